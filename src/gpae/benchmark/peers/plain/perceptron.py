"""The logit of a network with two hidden layers of rectified units."""

from typing import Any

__all__ = ["logit"]


def logit(arrays: dict[str, Any], inputs: Any, xp: Any) -> Any:
    """From standardised columns; ``xp`` is NumPy, or what stands in for it."""
    h = inputs
    for layer in range(2):
        h = xp.maximum(h @ arrays[f"weight{layer}"] + arrays[f"bias{layer}"], 0.0)
    return (h @ arrays["weight2"] + arrays["bias2"])[:, 0]
