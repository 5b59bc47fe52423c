"""How PyTorch's threads wait for each other: briefly awake, then asleep.

By default they spin. That gains a tenth as long as the cores are theirs, and costs a factor of ten as soon as another
process wants one: 205 s for a fit of 11 s, two of them on two cores. Woken after a thousand turns of spinning, such a
fit takes 12 s alone and 24 s beside the other.
"""

import os
import sys

__all__ = ["wait_briefly"]

_ASKED = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
_TURNS = "1000"


def wait_briefly() -> None:
    """Ask GNU's OpenMP for it, which reads that when PyTorch is loaded; who has asked for anything gets that."""
    if "torch" not in sys.modules and not any(name in os.environ for name in _ASKED):
        os.environ["GOMP_SPINCOUNT"] = _TURNS
