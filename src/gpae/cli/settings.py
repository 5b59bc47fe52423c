"""``--set name=value``: hyper-parameters from the command line."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_type_hints

from gpae.errors import InputError

__all__ = ["check_settings", "parse_settings"]


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value is JSON where it can be, text where not.

    Examples
    --------
    >>> parse_settings(["n_features=100", "beta=auto", "length_scale=0.5"])
    {'n_features': 100, 'beta': 'auto', 'length_scale': 0.5}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--set {pair!r} is not of the form name=value")
        if name in settings:
            raise InputError(f"--set gives {name!r} twice; remove one")
        settings[name] = _scalar(name, text)
    return settings


def _scalar(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict | list):
        raise InputError(f"--set {name}={text}: expected one number, word, true, false or null")
    return value


def check_settings(settings: Mapping[str, Any], *classes: type) -> None:
    """Refuse a value whose type is not the one that the first of the classes to know its name asks for.

    Python trusts its callers; a person who types a word for a number deserves a message.
    """
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    hints = [get_type_hints(cls.__init__) for cls in classes]  # type: ignore[misc]
    for name, value in settings.items():
        hint = next((known[name] for known in hints if name in known), Any)
        try:
            TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value)
        except ValidationError as error:
            wanted = "; or ".join(sorted({problem["msg"] for problem in error.errors()}))
            raise InputError(f"--set {name}={value}: {wanted}") from None
