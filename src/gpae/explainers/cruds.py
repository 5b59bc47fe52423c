"""CRUDS: keep what the label does not explain of a person, and search in what it does."""

from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor
from torch.nn.functional import softplus

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.kernels.slopes import Slope
from gpae.models.conditional_vae import ConditionalVAE
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.search_settings import check_settings, decided
from gpae.models.searched_autoencoder import check_fixed, fixed_columns
from gpae.numerics.descent import Descent, descend
from gpae.numerics.noise import row_keys, uniforms
from gpae.numerics.tiles import in_tiles
from gpae.search.decoded import Judgement, judged
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People, search_one_plan
from gpae.table.layout import Layout

__all__ = ["CRUDS"]

_CARLA = {
    "labels": "data",
    "w_init": "uniform",
    "distance_weight": 0.001,
    "step_size": 0.008,
    "n_iterations": 2000,
    "patience": None,
    "second_round": False,
}


class CRUDS(Explainer):
    """The best point with the target class in the label's subspace of a conditional auto-encoder.

    **Objective.** With z the mean of q(z|x) and x' = decode(z, w), minimise

        softplus(-s g(x')) + lambda |x' - x|^2

    over w alone, from the mean of p(w|y = target); of all iterates with s g(x') > 0 the one of least loss. Where there
    is none, the walk goes on from where it is with lambda = 0; the iterates are still compared by the loss above.

    **Differs from the paper.** It runs the reference implementation, whose auto-encoder collapses, so that everybody of
    one class is told to become the same person, and whose search starts at random (``preset="carla"``). Here the
    auto-encoder's terms are weighed per row and against the rows' variance, the adversary is trained on its own loss
    alone, and the label that w is about is the explained classifier's, not the data's. lambda is 0.3 instead of 0.001,
    which all but ignores the distance; w starts on the target's side, and walks on without lambda where that fails, so
    that the distance costs no validity. Steps are larger and fewer.
    Features fixed by the schema are given to the decoder; those fixed at the call, one-way features and bounds are
    imposed on every iterate; categories and whole steps can change, because the rounded row is what is judged and its
    gradient is passed straight through the rounding.

    Parameters
    ----------
    classifier
        The classifier to explain, fitted or not; None: a :class:`GPAEClassifier` with its defaults.
    autoencoder
        The :class:`ConditionalVAE`, fitted or not; None: one with its defaults.
    labels
        What w is about: ``"model"``, the class that the classifier predicts, or ``"data"``.
    w_init
        ``"prior"``: the mean of p(w|y = target); ``"uniform"``: drawn from the unit square.
    distance_weight
        lambda.
    step_size, n_iterations, patience
        Of RMSprop; at most so many steps a round, fewer where the loss has stopped falling (None: always all).
    second_round
        Whether to go on with lambda = 0 where nothing was found.
    margin
        Logit units beyond the boundary that an answer shall have; who can have none so far takes one without.
    preset
        ``"carla"``: the auto-encoder's size, weights and five epochs as there, the data's labels, w drawn,
        lambda = 0.001, 2000 steps of 0.008.
    """

    classifier_: GPAEClassifier
    autoencoder_: ConditionalVAE

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        autoencoder: ConditionalVAE | None = None,
        labels: Literal["model", "data"] = "model",
        w_init: Literal["prior", "uniform"] = "prior",
        distance_weight: float = 0.3,
        step_size: float = 0.05,
        n_iterations: int = 200,
        patience: int | None = 50,
        second_round: bool = True,
        margin: float = 0.0,
        preset: Literal["carla"] | None = None,
    ) -> None:
        self.classifier = classifier
        self.autoencoder = autoencoder
        self.labels = labels
        self.w_init = w_init
        self.distance_weight = distance_weight
        self.step_size = step_size
        self.n_iterations = n_iterations
        self.patience = patience
        self.second_round = second_round
        self.margin = margin
        self.preset = preset

    def _settings(self) -> dict[str, Any]:
        return decided(self.get_params(deep=False), _CARLA)

    def _check_parameters(self) -> None:
        one_of("preset", self.preset, (None, "carla"))
        one_of("labels", self.labels, ("model", "data"))
        one_of("w_init", self.w_init, ("prior", "uniform"))
        least = {"margin": 0.0, "distance_weight": 0.0, "step_size": 1e-9}
        check_settings(self.get_params(deep=False), counts=["n_iterations"], optional=["patience"], least=least)

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        model = explained_classifier(self.classifier, X, y, validation)
        self.autoencoder_ = self._fitted(model, X, y, validation)
        check_fixed(self.autoencoder_.fixed_, self.layout_)
        return model

    def _fitted(
        self, model: GPAEClassifier, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None
    ) -> ConditionalVAE:
        """The auto-encoder itself if it is fitted, else a copy of it (or of the default) fitted to the rows."""
        vae = self.autoencoder
        if vae is None:
            seed = model.random_state if isinstance(model.random_state, int) else 0
            vae = ConditionalVAE.carla(seed) if self.preset == "carla" else ConditionalVAE(random_state=seed)
        if hasattr(vae, "losses_"):
            return vae
        held_out = None if validation is None else (validation[0], self._labels(model, *validation))
        return clone(vae).fit(X, self._labels(model, X, y), fixed=fixed_columns(self.layout_), validation=held_out)

    def _labels(self, model: GPAEClassifier, X: Rows, y: Labels) -> Labels:
        if self._settings()["labels"] == "data":
            return y
        return np.asarray(model.predict_proba(X)[:, 1] > 0.5, dtype=np.int64)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        settings, slope, rounding = self._settings(), Slope.of(self.classifier_.model_), Rounding.of(self.layout_)
        start = torch.as_tensor(uniforms(row_keys(query.x, seed), self.autoencoder_.label_dim), dtype=torch.float32)
        if settings["w_init"] == "prior":
            (start,) = in_tiles(lambda target: (self.autoencoder_.prior(target),), (torch.as_tensor(query.target),))
        weights = [settings["distance_weight"], *([0.0] if settings["second_round"] else [])]
        legs = [partial(self._one_round, slope, rounding, weight) for weight in weights]
        return search_one_plan(
            self.layout_, query.x, query.target, query.lower, query.upper, legs, (start,), margin=self.margin
        )

    def _one_round(
        self, slope: Slope, rounding: Rounding, weight: float, people: People, start: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        walked = self._descent(slope, rounding, people, start, weight)
        return walked.row, walked.found, walked.state

    def _descent(self, slope: Slope, rounding: Rounding, people: People, start: Tensor, weight: float) -> Descent:
        settings, z = self._settings(), self.autoencoder_.rest(people.x)
        dearness = settings["distance_weight"]

        def decode(w: Tensor) -> Tensor:
            return self.autoencoder_.decode(z, w, people.x)

        def judge(x: Tensor) -> Judgement:
            g, gradient = slope(x, people.sign)
            step = x - people.x
            pull = -torch.sigmoid(people.clear - g).unsqueeze(1) * gradient + 2 * weight * step
            miss, far = softplus(people.clear - g), step.square().sum(1)
            return Judgement(miss + weight * far, pull, g > people.clear, miss + dearness * far)

        return descend(
            start,
            lambda w: judged(w, decode, judge, rounding, people),
            partial(torch.optim.RMSprop, lr=settings["step_size"]),
            settings["n_iterations"],
            patience=settings["patience"],
        )

    def state(self) -> State:
        """The classifier's state and the auto-encoder's; the search itself learns nothing."""
        own = State({}, {}).with_part("classifier", self.classifier_.state())
        return own.with_part("autoencoder", self.autoencoder_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.classifier_ = GPAEClassifier.from_state(state.part("classifier"))
        self.autoencoder_ = ConditionalVAE.from_state(state.part("autoencoder"))


EXPLAINERS.add("cruds", CRUDS, paper_name="CRUDS")
