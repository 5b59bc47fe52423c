"""What the search needs to know of an encoder with a linear classifier on its latents: value, slope and bend."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

__all__ = ["Encoder"]


@runtime_checkable
class Encoder(Protocol):
    """lambda = f_e(x) with g = theta' lambda + theta_0, row by row; what runs inside a tile."""

    @property
    def theta(self) -> Float[Tensor, " d"]:
        """The classifier's direction in the latent space."""
        ...

    @property
    def theta0(self) -> Float[Tensor, ""]:
        """The classifier's bias."""
        ...

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """lambda."""
        ...

    def encode_with_jacobian(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d D"]]:
        """Lambda and J = d lambda / d x."""
        ...

    def bend(self, x: Float[Tensor, "B D"], pull: Float[Tensor, "B d"]) -> Float[Tensor, "B D D"]:
        """sum_k pull_k (Hessian of lambda_k)."""
        ...

    def widened(self, extra: int) -> "Encoder":
        """The same encoder with ``extra`` further input columns that take part in nothing."""
        ...
