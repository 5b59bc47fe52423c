"""Who says on which side the rows of CounterNet's generator are: its own predictor, or a classifier that is fitted."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.kernels.slopes import Slope
from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.numerics.tiles import in_tiles

__all__ = ["Described", "Judge"]


class Judge(Protocol):
    """Who says on which side a row is."""

    def __call__(self, x: Float[Tensor, "B D"], /) -> tuple[Float[Tensor, "B c"], Float[Tensor, " B"]]:
        """Return what the generator sees of rows, and their logits."""
        ...

    def logits(self, x: Float[Tensor, "B D"], /) -> Float[Tensor, " B"]:
        """Return the logits alone, with a gradient."""
        ...


class Described:
    """A fitted classifier as the judge: the generator sees its latents and its logit, in units of their spread."""

    def __init__(self, model: AutoEncoder, centre: Float[Tensor, " c"], spread: Float[Tensor, " c"]) -> None:
        self.model = model
        self.centre = centre
        self.spread = spread

    @classmethod
    def on(cls, model: AutoEncoder, X: Float[Tensor, "n D"]) -> "Described":
        """Measure the spread on training rows."""
        (seen,) = in_tiles(lambda x: (cls._seen(model, x),), (X,))
        return cls(model, seen.mean(0), seen.std(0).clamp(min=1e-6))

    @staticmethod
    def _seen(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, "B c"]:
        latent = encode(model, x)
        return torch.cat([latent, logit(model, latent).unsqueeze(1)], 1)

    def __call__(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B c"], Float[Tensor, " B"]]:
        """Return what the generator sees, and the logits."""
        seen = self._seen(self.model, x)
        return (seen - self.centre) / self.spread, seen[:, -1]

    def logits(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """Return the logits alone."""
        return self(x)[1]

    def for_training(self) -> "_InTraining":
        """The same in single precision."""
        return _InTraining(self)


class _InTraining:
    """A described classifier in training: in single precision, its logit soon computed and differentiated."""

    def __init__(self, described: Described) -> None:
        self.slope = Slope.of(described.model)
        self.described = Described(self.slope.model, described.centre.float(), described.spread.float())

    def __call__(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B c"], Float[Tensor, " B"]]:
        """Return what the generator sees, and the logits."""
        return self.described(x)

    def logits(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """Return the logits alone."""
        return self.slope.differentiable(x)
