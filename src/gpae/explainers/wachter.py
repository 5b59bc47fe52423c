"""Wachter: walk from the person towards the other class, paying for every step."""

from functools import partial
from typing import Any, Literal

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
from gpae.numerics.descent import Descent, Evaluation, descend
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People, search_one_plan
from gpae.table.layout import Layout

__all__ = ["Wachter"]

_CARLA = {"distance_weight": 0.01, "learning_rate": 0.01, "n_iterations": 1000}


class Wachter(Explainer):
    """Gradient descent in feature space until the label flips.

    **Objective.** softplus(-s g(x')) + lambda |x' - x|_1 from x' = x, until s g(x') > 0. Where that is not reached, the
    weight lambda is halved and the walk goes on from where it is.

    **Differs from the paper.** Its description is plain ascent of the logit; this is the published method, whose
    distance term the paper leaves out. Against the reference implementation: the weight is halved instead of lowered
    by 0.05 (which makes it negative at once and rewards distance), there is no time limit, the box and the mask are
    obeyed after every step, and categories and whole steps can change (straight-through) because the row that is judged
    is the row that would be returned.

    Parameters
    ----------
    classifier
        The classifier to explain, fitted or not; None: a :class:`GPAEClassifier` with its defaults.
    learning_rate, n_iterations
        Of Adam (AMSGrad), and steps for each value of the weight.
    distance_weight, rounds
        The first lambda, and how many values of it are tried.
    shrink
        Whether to go back towards the person, by bisection, as far as the decision allows.
    margin
        Logit units beyond the boundary that an answer shall have; who can have none so far takes one without.
    preset
        ``"carla"``: 1000 steps of 0.01 with lambda = 0.01, and 1000 more without, where it lowers lambda by 0.05.
    """

    classifier_: GPAEClassifier

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        learning_rate: float = 0.01,
        n_iterations: int = 1000,
        distance_weight: float = 0.01,
        rounds: int = 10,
        shrink: bool = False,
        margin: float = 0.0,
        preset: Literal["carla"] | None = None,
    ) -> None:
        self.classifier = classifier
        self.learning_rate = learning_rate
        self.n_iterations = n_iterations
        self.distance_weight = distance_weight
        self.rounds = rounds
        self.shrink = shrink
        self.margin = margin
        self.preset = preset

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        return explained_classifier(self.classifier, X, y, validation)

    def _check_parameters(self) -> None:
        one_of("preset", self.preset, (None, "carla"))
        least = {"margin": 0.0, "distance_weight": 0.0, "learning_rate": 1e-9}
        check_settings(self.get_params(deep=False), counts=["n_iterations", "rounds"], least=least)

    def _settings(self) -> dict[str, Any]:
        return decided(self.get_params(deep=False), _CARLA)

    def _weights(self) -> list[float]:
        """From the first value on; CARLA's second, 0.01 - 0.05, would reward distance and is 0 here."""
        first = self._settings()["distance_weight"]
        return [first, 0.0] if self.preset == "carla" else [first * 0.5**r for r in range(self.rounds)]

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        one_round = partial(self._one_round, Slope.of(self.classifier_.model_), Rounding.of(self.layout_))
        legs = [partial(one_round, weight) for weight in self._weights()]
        start = torch.as_tensor(query.x, dtype=torch.float32)
        return search_one_plan(
            self.layout_, query.x, query.target, query.lower, query.upper, legs, (start,), margin=self.margin
        )

    def _one_round(
        self, slope: Slope, rounding: Rounding, weight: float, people: People, state: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        walked = self._descent(slope, rounding, people, state, weight)
        row = self._shrunk(slope, rounding, people, walked.row) if self.shrink else walked.row
        return row, walked.found, walked.state

    def _descent(self, slope: Slope, rounding: Rounding, people: People, state: Tensor, weight: float) -> Descent:
        def evaluate(u: Tensor) -> Evaluation:
            x = rounding(u, *people.exact)
            g, gradient = slope(x, people.sign)
            step = x - people.x
            loss = softplus(people.clear - g) + weight * step.abs().sum(1)
            pull = -torch.sigmoid(people.clear - g).unsqueeze(1) * gradient + weight * step.sign()
            return Evaluation(x, loss, pull, g > people.clear)

        return descend(
            state,
            evaluate,
            partial(torch.optim.Adam, lr=self._settings()["learning_rate"], amsgrad=True),
            self._settings()["n_iterations"],
            stop_at_first=True,
            projected=lambda u: torch.minimum(torch.maximum(u, people.lower), people.upper),
        )

    @staticmethod
    def _shrunk(slope: Slope, rounding: Rounding, people: People, row: Tensor, n_halvings: int = 10) -> Tensor:
        """Bisect between the person and the answer; what is kept is always on the target's side."""
        low, best = torch.zeros(len(row), 1), row
        high = torch.ones(len(row), 1)
        for _ in range(n_halvings):
            share = (low + high) / 2
            x = rounding(people.x + share * (row - people.x), *people.exact)
            valid = (people.sign * slope.logits(x) > people.clear).unsqueeze(1)
            best = torch.where(valid, x, best)
            low, high = torch.where(valid, low, share), torch.where(valid, share, high)
        return best

    def state(self) -> State:
        """The classifier's state; the search itself learns nothing."""
        return State({}, {}).with_part("classifier", self.classifier_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.classifier_ = GPAEClassifier.from_state(state.part("classifier"))


EXPLAINERS.add("wachter", Wachter, paper_name="Wachter")
