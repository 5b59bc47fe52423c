"""The logit of a GPAE: g(x) = theta'W_e'phi(x) + theta_0 with phi(x) = sqrt(2/S) cos(Zx + c).

The two linear maps and the amplitude are folded into one vector of S weights, and the classifier's own scaling of the
columns into Z and c.
"""

from typing import Any

__all__ = ["logit"]


def logit(arrays: dict[str, Any], inputs: Any, xp: Any) -> Any:
    """From standardised columns; ``xp`` is NumPy, or what stands in for it."""
    return xp.cos(inputs @ arrays["frequencies"] + arrays["phases"]) @ arrays["weights"] + arrays["bias"]
