"""Numbers as a person reads them."""

import math

__all__ = ["number", "pair", "percent"]


def number(value: float, digits: int = 4, decimals: int | None = None) -> str:
    """Return a number with thousands set apart, in ``decimals`` places or ``digits`` significant digits.

    Examples
    --------
    >>> number(40.0), number(12345.678), number(0.123456), number(2.5, decimals=2)
    ('40', '12,346', '0.1235', '2.50')
    """
    if not math.isfinite(value):
        return "missing" if math.isnan(value) else str(value)
    if decimals is not None:
        return _minus(f"{value:,.{decimals}f}")
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        magnitude = 0 if value == 0 else math.floor(math.log10(abs(value)))
        text = f"{value:,.{max(digits - 1 - magnitude, 0)}f}"
        return _minus(text.rstrip("0").rstrip(".") if "." in text else text)
    return _minus(f"{value:.{digits}g}")


def pair(before: float, after: float, decimals: int | None = None) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes to tell them apart."""
    if decimals is not None and (before == after or number(before, 6, decimals) != number(after, 6, decimals)):
        return number(before, 6, decimals), number(after, 6, decimals)
    for digits in range(6, 17):
        texts = number(before, digits), number(after, digits)
        if texts[0] != texts[1]:
            break
    return texts


def percent(share: float) -> str:
    """Return a share in whole per cent, without claiming 0 or 100 for what is only close to them.

    Examples
    --------
    >>> percent(0.5), percent(0.004), percent(1.0), percent(0.9996)
    ('50 %', '<1 %', '100 %', '>99 %')
    """
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{100 * share:.0f} %"


def _minus(text: str) -> str:
    return "0" if text == "-0" else text.replace("-", "−")
