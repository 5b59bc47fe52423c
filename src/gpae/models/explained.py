"""The classifier that a post-hoc method explains, and its logit as something to walk on."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from sklearn.base import clone
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.kernels.slopes import CompiledSlopes
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.autoencoder import AutoEncoder, encode, logit, logit_with_gradient
from gpae.numerics.placement import moved

__all__ = ["Slope", "explained_classifier"]


def explained_classifier(
    classifier: GPAEClassifier | None, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None
) -> GPAEClassifier:
    """Return the classifier itself if it is fitted, else a copy of it (or of the default) fitted to the rows."""
    if classifier is not None and hasattr(classifier, "model_"):
        return classifier
    fresh = GPAEClassifier() if classifier is None else clone(classifier)
    return fresh.fit(X, y, validation=validation)


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The logit of the target class and its gradient, in single precision; to be called in tiles."""

    model: AutoEncoder
    compiled: CompiledSlopes | None

    @classmethod
    def of(cls, classifier: GPAEClassifier) -> "Slope":
        """Take the auto-encoder out of a fitted classifier."""
        return cls.on(classifier.model_)

    @classmethod
    def on(cls, model: AutoEncoder) -> "Slope":
        """Compile what can be compiled."""
        single = moved(model, device="cpu", dtype=torch.float32)
        return cls(single, CompiledSlopes.of(single))

    def __call__(
        self, x: Float[Tensor, "B D"], sign: Float[Tensor, " B"]
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
        """s g(x) and its gradient; positive on the target's side."""
        g, gradient = logit_with_gradient(self.model, x) if self.compiled is None else self.compiled(x)
        return sign * g, gradient.mul_(sign.unsqueeze(1))

    def logits(self, x: Float[Tensor, "B D"], sign: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """s g(x) alone, in half the time."""
        return sign * (self._plain(x) if self.compiled is None else self.compiled.logits(x))

    def differentiable(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """g(x), whose gradient torch knows."""
        return self._plain(x) if self.compiled is None else self.compiled.differentiable(x)

    def _plain(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        return logit(self.model, encode(self.model, x))
