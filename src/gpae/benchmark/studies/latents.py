"""What the figures of the latent space are drawn from: the density, the choice of beta, the plane of the latents."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gpae.arrays import Mask, Rows
from gpae.artefact import State
from gpae.benchmark.workbench import Workbench
from gpae.explainers.gpae import GPAE
from gpae.models.density_weight import DensityWeight
from gpae.models.gp_autoencoder import GPAEClassifier

__all__ = ["Latents", "make_latents"]

_MOST = 3000


@dataclass(frozen=True, slots=True, eq=False)
class Latents:
    """A fitted classifier with its density, latents of training rows, and the curve behind beta."""

    classifier: GPAEClassifier
    latents: Rows
    favourable: Mask
    """Whether each of these rows is labelled favourable."""
    choice: DensityWeight

    def state(self) -> State:
        """To be saved."""
        curve = asdict(self.choice)
        beta = curve.pop("beta")
        own = State({"latents": self.latents, "favourable": self.favourable.astype(np.uint8)}, {})
        own = own.with_part("choice", State(curve, {"beta": beta}))
        return own.with_part("classifier", self.classifier.state())

    @classmethod
    def from_state(cls, state: State) -> "Latents":
        """Rebuild from :meth:`state`."""
        choice = state.part("choice")
        return cls(
            GPAEClassifier.from_state(state.part("classifier")),
            state.arrays["latents"],
            state.arrays["favourable"].astype(np.bool_),
            DensityWeight(**(choice.arrays | choice.values)),
        )


def make_latents(shared: Path, latent_dim: int, *, dataset: str = "lcd", seed: int = 0) -> Latents:
    """Fit a classifier and choose beta for it; two latents can be drawn as they are, the paper's tables have four."""
    bench = Workbench(dataset, seed, rows=1000, shared=shared)
    model = GPAEClassifier(latent_dim=latent_dim, random_state=seed)
    model.fit(*bench.parts.train, validation=bench.parts.valid)
    method = GPAE(classifier=model)
    method.fit(*bench.parts.train, layout=bench.layout(masked=False), validation=bench.parts.valid)
    choice = method.density_weight_
    if choice is None:
        raise RuntimeError(f"nobody refused on {dataset} reaches the boundary, so there is no beta to choose")
    X, y = bench.parts.train
    return Latents(model, model.transform(X[:_MOST]), y[:_MOST] == 1, choice)
