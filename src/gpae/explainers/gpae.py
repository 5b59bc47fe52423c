"""GPAE: the paper's method, a constrained search in feature space through the auto-encoder's latent space."""

from typing import Literal

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.density_weight import BETA_GRID
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.learnt_search import LearntSearch, SearchSettings, Units, WithLearntSearch
from gpae.search.plans import PlanSearch, Solver
from gpae.search.problem import Problem, Surface
from gpae.table.layout import Layout

__all__ = ["GPAE"]


class GPAE(WithLearntSearch, Explainer):
    """Least change, high density, on the decision boundary, inside the box.

    **Objective.** For each row x, with s the side of the target class,

        min_u  1/2 |u - x|^2 - beta log p(f_e(u))   s.t.   s g(u) = margin,   lower <= u <= upper,

    then levels, whole steps and the remaining columns settled so that the row as written is favourable.

    **Differs from the paper.** The boundary is crossed by a margin, because on it nothing is decided (E7). Bounds are
    part of the problem, immutable columns are bounds of width zero. The default solver is a batched Newton method;
    ``solver="reference"`` runs the paper's alternating updates. beta's grid starts below the paper's 0.1, since the
    least divergence lies there on some data; the divergence is estimated as in E13-E16.

    Parameters
    ----------
    classifier
        The :class:`GPAEClassifier` to explain, fitted or not; None: one with its defaults.
    beta
        Weight of the log density; ``"auto"``: chosen at ``fit`` by the divergence on the boundary.
    margin
        In logit units; ``"auto"``: 0.02 standard deviations of the training logits.
    solver
        ``"newton"`` or ``"reference"``.
    divergence
        ``"corrected"`` or ``"literal"``, the paper's Algorithm 3 as printed.
    beta_grid
        What beta is chosen from.
    units
        In which a way is measured: ``"encoded"``, the paper's, where a number's whole range is one; or
        ``"deviations"``, where one standard deviation of the training rows is, so that the few who are far out do not
        make a step along their column cheap.
    """

    classifier_: GPAEClassifier

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        beta: float | Literal["auto"] = "auto",
        margin: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        divergence: Literal["corrected", "literal"] = "corrected",
        beta_grid: tuple[float, ...] = BETA_GRID,
        units: Units = "encoded",
    ) -> None:
        self.classifier = classifier
        self.beta = beta
        self.margin = margin
        self.solver = solver
        self.divergence = divergence
        self.beta_grid = beta_grid
        self.units = units

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        settings = SearchSettings(self.beta, self.margin, self.solver, self.divergence, self.beta_grid, self.units)
        settings.check()
        model = explained_classifier(self.classifier, X, y, validation)
        self.search_ = LearntSearch.learn(model, self.layout_, X, validation, settings)
        return model

    def surface(self) -> Surface:
        """What the search walks on."""
        device: Literal["cpu", "cuda"] = "cuda" if self.classifier_.device.startswith("cuda") else "cpu"
        return Surface(self.classifier_.model_, self.classifier_.density_, device)

    def problem(self, query: Query) -> Problem:
        """The query as tensors."""
        return self._plan_search().problem(query.x, query.target, query.lower, query.upper)

    def _plan_search(self) -> PlanSearch:
        return self.search_.on(self.surface(), self.layout_, self.solver)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        return self._plan_search().plans(query.x, query.target, query.lower, query.upper, k)

    def state(self) -> State:
        """The classifier's state and the search's own figures."""
        return self.search_.state().with_part("classifier", self.classifier_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.classifier_ = GPAEClassifier.from_state(state.part("classifier"))
        self.search_ = LearntSearch.from_state(state)


EXPLAINERS.add("gpae", GPAE, paper_name="GPAE")
