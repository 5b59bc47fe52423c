"""Adam on tensors whose gradients are at hand.

The one of torch, when first made, imports torch's compiler: seconds, for a few lines.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Adam"]

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Moves parameters in place, each at its own rate."""

    def __init__(self, parameters: Sequence[Tensor], rates: Sequence[float]) -> None:
        self._parameters, self._rates = parameters, rates
        self._means = [torch.zeros_like(t) for t in parameters]
        self._squares = [torch.zeros_like(t) for t in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[Tensor], factor: float = 1.0) -> None:
        """One step, at the rates times a factor."""
        self._steps += 1
        shrunk = 1 - _FIRST**self._steps
        spread = 1 - _SECOND**self._steps
        for t, rate, g, mean, square in zip(
            self._parameters, self._rates, gradients, self._means, self._squares, strict=True
        ):
            mean.lerp_(g, 1 - _FIRST)
            square.mul_(_SECOND).addcmul_(g, g, value=1 - _SECOND)
            t.addcdiv_(mean, (square / spread).sqrt_().add_(_EPSILON), value=-factor * rate / shrunk)
