"""REVISE: gradient descent in the latent space of an auto-encoder."""

from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import softplus

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.kernels.slopes import Slope
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.search_settings import check_settings, decided
from gpae.models.searched_autoencoder import fitted_vae
from gpae.models.vae import VAE
from gpae.models.vae_network import Objective
from gpae.numerics.descent import Descent, descend
from gpae.search.decoded import Judgement, judged
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People, search_one_plan
from gpae.table.layout import Layout

__all__ = ["REVISE"]

_CARLA = {"distance_weight": 0.5, "step_size": 0.1, "n_iterations": 1000, "patience": None}


class REVISE(Explainer):
    """The best point with the target class on a descent through latent space.

    **Objective.** J(z) = softplus(-s g(x')) + lambda |x' - x|_1 with x' = decode(z) beside the columns that may not
    change, from the latent mean of x; of all iterates with s g(x') > 0 the one of least J.

    **Differs from the paper.** It runs the reference implementation, whose auto-encoder collapses (``preset="carla"``
    with ``objective="carla_legacy"``). Here the auto-encoder's loss is balanced and its training stops by validation
    rows; only z moves, never what the decoder is told about fixed columns; categories and whole steps can change,
    because the rounded row is what is judged and its gradient is passed straight through the rounding; features fixed
    at the call, one-way features and bounds are imposed on every iterate; where nothing is found, a second descent
    passes the gradient of levels straight through the decoder's sigmoid, too, which is flat where the decoder is sure
    and would hold them fast (not with the preset); there are 300 steps instead of 1000, which lower J by a few
    hundredths more, and a row stops when J has not fallen for ``patience`` steps.

    Parameters
    ----------
    classifier
        The classifier to explain, fitted or not; None: a :class:`GPAEClassifier` with its defaults.
    autoencoder
        The :class:`VAE`, fitted or not; None: one with its defaults and the objective below.
    objective
        Of the auto-encoder, where none is given.
    distance_weight
        lambda.
    step_size, n_iterations, patience
        Of Adam; at most so many steps, fewer where J has stopped falling (None: always all).
    margin
        Logit units beyond the boundary that an answer shall have; who can have none so far takes one without.
    preset
        ``"carla"``: lambda = 0.5, 1000 steps of 0.1 without early stop, and the auto-encoder's size, loss and five
        epochs as there (``objective="carla_legacy"`` keeps the older loss).
    """

    classifier_: GPAEClassifier
    autoencoder_: VAE

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        autoencoder: VAE | None = None,
        objective: Objective = "balanced",
        distance_weight: float = 0.5,
        step_size: float = 0.1,
        n_iterations: int = 300,
        patience: int | None = 100,
        margin: float = 0.0,
        preset: Literal["carla"] | None = None,
    ) -> None:
        self.classifier = classifier
        self.autoencoder = autoencoder
        self.objective = objective
        self.distance_weight = distance_weight
        self.step_size = step_size
        self.n_iterations = n_iterations
        self.patience = patience
        self.margin = margin
        self.preset = preset

    def _settings(self) -> dict[str, Any]:
        return decided(self.get_params(deep=False), _CARLA)

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        model = explained_classifier(self.classifier, X, y, validation)
        seed = model.random_state if isinstance(model.random_state, int) else 0
        self.autoencoder_ = fitted_vae(
            self.autoencoder, X, self.layout_, validation, objective=self.objective, preset=self.preset, seed=seed
        )
        return model

    def _check_parameters(self) -> None:
        one_of("preset", self.preset, (None, "carla"))
        one_of("objective", self.objective, get_args(Objective))
        least = {"margin": 0.0, "distance_weight": 0.0, "step_size": 1e-9}
        check_settings(self.get_params(deep=False), counts=["n_iterations"], optional=["patience"], least=least)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        walk = partial(self._walk, Slope.of(self.classifier_.model_), Rounding.of(self.layout_))
        straight = [None] if self.preset == "carla" else [None, torch.as_tensor(self.layout_.discrete)]
        legs = [partial(walk, columns) for columns in straight]
        return search_one_plan(self.layout_, query.x, query.target, query.lower, query.upper, legs, margin=self.margin)

    def _walk(self, slope: Slope, rounding: Rounding, straight: Tensor | None, people: People) -> tuple[Tensor, Tensor]:
        walked = self._descent(slope, rounding, straight, people)
        return walked.row, walked.found

    def _descent(self, slope: Slope, rounding: Rounding, straight: Tensor | None, people: People) -> Descent:
        settings, vae = self._settings(), self.autoencoder_
        weight = settings["distance_weight"]

        def judge(x: Tensor) -> Judgement:
            g, gradient = slope(x, people.sign)
            change = x - people.x
            pull = -torch.sigmoid(people.clear - g).unsqueeze(1) * gradient + weight * change.sign()
            # the sigmoid never quite reaches a bound: pulled beyond it, z would run away and nothing would change
            beyond = ((x <= people.lower) & (pull > 0)) | ((x >= people.upper) & (pull < 0))
            loss = softplus(people.clear - g) + weight * change.abs().sum(1)
            return Judgement(loss, pull.masked_fill(beyond, 0.0), g > people.clear)

        return descend(
            vae.encode(people.x),
            lambda z: judged(z, lambda latent: vae.decode(latent, people.x, straight), judge, rounding, people),
            partial(torch.optim.Adam, lr=settings["step_size"]),
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
        self.autoencoder_ = VAE.from_state(state.part("autoencoder"))


EXPLAINERS.add("revise", REVISE, paper_name="REVISE")
