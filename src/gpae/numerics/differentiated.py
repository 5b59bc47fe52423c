"""An encoder of which only the value is written down: slope and bend by automatic differentiation.

Slow and obvious: for encoders whose inside is another library's, and to compare hand-written derivatives with.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Differentiated"]


@dataclass(frozen=True, slots=True, eq=False)
class Differentiated:
    """A differentiable map with a linear classifier on its values; an :class:`~gpae.numerics.encoder.Encoder`."""

    function: Callable[[Tensor], Tensor]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]
    ignored: int = 0
    """Columns at the end of a row that the function does not get to see."""

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """lambda."""
        return self.function(x[:, : x.shape[1] - self.ignored])

    def encode_with_jacobian(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d D"]]:
        """Lambda and its Jacobian, one backward pass a latent."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            latent = self.encode(x)
            rows = [torch.autograd.grad(one.sum(), x, retain_graph=True)[0] for one in latent.unbind(1)]
        return latent.detach(), torch.stack(rows, 1)

    def bend(self, x: Float[Tensor, "B D"], pull: Float[Tensor, "B d"]) -> Float[Tensor, "B D D"]:
        """sum_k pull_k (Hessian of lambda_k), one backward pass a column."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad((self.encode(x) * pull).sum(), x, create_graph=True)
            rows = [torch.autograd.grad(one.sum(), x, retain_graph=True)[0] for one in slope.unbind(1)]
        return torch.stack(rows, 1)

    def widened(self, extra: int) -> "Differentiated":
        """With ``extra`` further columns to ignore."""
        return replace(self, ignored=self.ignored + extra)
