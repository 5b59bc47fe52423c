"""GPAE: the paper's method, a constrained search in feature space through the auto-encoder's latent space."""

from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.arrays import Labels, Mask, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.density_weight import BETA_GRID, DensityWeight, choose_density_weight
from gpae.models.gp_autoencoder import GPAEClassifier, default_margin
from gpae.progress import report
from gpae.search import newton, reference
from gpae.search.polish import Polished, polish
from gpae.search.problem import Problem, Solution, Surface
from gpae.table.layout import Layout

__all__ = ["GPAE"]

_ANCHORS = 2000
_SELECTION_ROWS = 300
_SLIVER = 0.02
"""Share of the margin that a row may settle for if the whole of it cannot be had."""


class GPAE(Explainer):
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
        The :class:`GPAEClassifier` to fit; None: one with its defaults.
    beta
        Weight of the log density; ``"auto"``: chosen at ``fit`` by the divergence on the boundary.
    margin
        In logit units; ``"auto"``: 0.02 standard deviations of the training logits.
    solver
        ``"newton"`` or ``"reference"``.
    divergence
        ``"corrected"`` or ``"literal"``, the paper's Algorithm 3 as printed.
    """

    self_explaining = True

    classifier_: GPAEClassifier
    beta_: float
    margin_: float
    anchors_: Rows
    density_weight_: DensityWeight | None

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        beta: float | Literal["auto"] = "auto",
        margin: float | Literal["auto"] = "auto",
        solver: Literal["newton", "reference"] = "newton",
        divergence: Literal["corrected", "literal"] = "corrected",
        beta_grid: tuple[float, ...] = BETA_GRID,
    ) -> None:
        self.classifier = classifier
        self.beta = beta
        self.margin = margin
        self.solver = solver
        self.divergence = divergence
        self.beta_grid = beta_grid

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        model = self.classifier if self.classifier is not None else GPAEClassifier()
        model.fit(X, y, validation=validation)
        self.classifier_ = model
        logits = model.decision_function(X)
        self.margin_ = default_margin(model) if self.margin == "auto" else float(self.margin)
        generator = np.random.Generator(np.random.Philox(_seed_of(model)))
        safe = np.flatnonzero(logits > self.margin_)
        self.anchors_ = X[np.sort(generator.permutation(safe)[:_ANCHORS])]
        self._choose_beta(X, logits, validation, generator)
        return model

    def _check_parameters(self) -> None:
        one_of("solver", self.solver, ("newton", "reference"))
        one_of("divergence", self.divergence, ("corrected", "literal"))
        for name, least in (("beta", 0.0), ("margin", 1e-9)):
            value = getattr(self, name)
            if value != "auto" and not (isinstance(value, Real) and least <= float(value) < np.inf):
                raise InputError(f"{name}={value!r} must be 'auto' or a number of at least {least:g}")
        if not len(self.beta_grid) or not all(0 <= beta < np.inf for beta in self.beta_grid):
            raise InputError(f"beta_grid={self.beta_grid!r} must hold at least one number, none below 0")

    def _choose_beta(
        self,
        X: Rows,
        logits: np.ndarray[Any, np.dtype[np.float64]],
        validation: tuple[Rows, Labels] | None,
        generator: np.random.Generator,
    ) -> None:
        """Search refused validation rows (else training rows) at every beta of the grid."""
        self.density_weight_ = None
        self.beta_ = float(self.beta_grid[0] if self.beta == "auto" else self.beta)
        pool = X[logits < 0] if validation is None else validation[0]
        pool = pool[self.classifier_.decision_function(pool) < 0] if len(pool) else pool
        if self.beta != "auto" or self.classifier_.latent_dim < 2 or len(pool) < 2:
            return
        rows = pool[np.sort(generator.permutation(len(pool))[:_SELECTION_ROWS])]
        lower, upper = self.layout_.box(rows)
        query = Query(rows, np.ones(len(rows), np.int64), np.zeros((len(rows), 1), np.bool_), lower, upper)
        self.density_weight_ = choose_density_weight(
            self.surface(),
            self.problem(query, beta=0.0),
            torch.as_tensor(self.classifier_.transform(X)),
            torch.Generator().manual_seed(int(generator.integers(2**31))),
            grid=tuple(self.beta_grid),
            estimator=self.divergence,
        )
        if self.density_weight_ is not None:
            self.beta_ = self.density_weight_.beta

    def surface(self) -> Surface:
        """What the search walks on."""
        return Surface(self.classifier_.model_, self.classifier_.density_)

    def problem(self, query: Query, *, beta: float | None = None) -> Problem:
        """The query as tensors."""
        n = len(query.x)
        x, lower, upper = (torch.as_tensor(a, dtype=torch.float64) for a in (query.x, query.lower, query.upper))
        sign = torch.as_tensor(2.0 * query.target - 1.0, dtype=torch.float64)
        weight = torch.full((n,), self.beta_ if beta is None else beta, dtype=torch.float64)
        return Problem(x, lower, upper, weight, sign, torch.full((n,), self.margin_, dtype=torch.float64))

    def relax(self, problem: Problem) -> Solution:
        """Solve the relaxation with the chosen solver."""
        solve = reference.solve if self.solver == "reference" else newton.solve
        return solve(self.surface(), problem)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        """Plan after plan: each further one must do without the feature that the one before leaned on most."""
        under_way = np.arange(len(query.x))
        fixed, found = query.fixed, _Found([], [], [])
        for number in range(k):
            report("searching", number / k)
            part = Query(*(getattr(query, f.name)[under_way] for f in fields(Query)))
            answer = self._one_plan(part, fixed)
            u, valid = answer.u.numpy(), answer.valid.numpy()
            fresh = valid & found.differs(under_way, u)
            found.add(under_way[fresh], u[fresh], answer.objective.numpy()[fresh])
            # who has no plan now will have none with one more feature locked
            fixed = (fixed | self._heaviest_change(u, part.x))[valid]
            under_way = under_way[valid]
            if not len(under_way):
                break
        report("searching", 1.0)
        return found.best_first()

    def _one_plan(self, query: Query, fixed: Mask) -> Polished:
        """Search with the margin asked for; where that fails, settle for a sliver of it."""
        lower, upper = self.layout_.box(query.x, fixed)
        problem = self.problem(Query(query.x, query.target, fixed, lower, upper))
        anchors = torch.as_tensor(self.anchors_)
        if (query.target != 1).any():
            anchors = anchors[:0]
        surface = self.surface()
        best = polish(surface, problem, self.layout_, self.relax(problem).u, anchors)
        lost = (~best.valid & (problem.lower < problem.upper).any(1)).nonzero().squeeze(1)
        if not len(lost):
            return best
        part = problem.rows(lost)
        part = replace(part, margin=_SLIVER * part.margin)
        again = polish(surface, part, self.layout_, self.relax(part).u, anchors)
        return best.replaced(lost, again)

    def _heaviest_change(self, u: Rows, x: Rows) -> Mask:
        """B x F: the one feature of each row that moved furthest."""
        moved = np.stack([((u - x)[:, f.columns] ** 2).sum(1) for f in self.layout_.features], axis=1)
        return (np.arange(moved.shape[1]) == moved.argmax(1)[:, None]) & (moved > 0)

    def state(self) -> State:
        """The classifier's state and the search's own figures."""
        inner = self.classifier_.state()
        arrays = {**{f"classifier.{k}": v for k, v in inner.arrays.items()}, "anchors": self.anchors_}
        values: dict[str, Any] = {"classifier": inner.values, "beta": self.beta_, "margin": self.margin_}
        if self.density_weight_ is not None:
            curve = asdict(self.density_weight_)
            values["chosen_beta"] = curve.pop("beta")
            arrays |= {f"density_weight.{k}": v for k, v in curve.items()}
        return State(arrays, values)

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        inner = {k.removeprefix("classifier."): v for k, v in state.arrays.items() if k.startswith("classifier.")}
        self.layout_ = layout
        self.classifier_ = GPAEClassifier.from_state(State(inner, state.values["classifier"]))
        self.anchors_ = state.arrays["anchors"]
        self.beta_, self.margin_ = state.values["beta"], state.values["margin"]
        curve = {
            k.removeprefix("density_weight."): v for k, v in state.arrays.items() if k.startswith("density_weight.")
        }
        self.density_weight_ = DensityWeight(**curve, beta=state.values["chosen_beta"]) if curve else None


def _seed_of(model: GPAEClassifier) -> int:
    return model.random_state if isinstance(model.random_state, int) else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The plans found so far, round by round: positions in the query, rows, objectives."""

    row: list[NDArray[np.intp]]
    u: list[Rows]
    cost: list[NDArray[np.float64]]

    def add(self, row: NDArray[np.intp], u: Rows, cost: NDArray[np.float64]) -> None:
        self.row.append(row)
        self.u.append(u)
        self.cost.append(cost)

    def differs(self, row: NDArray[np.intp], u: Rows) -> Mask:
        """Which answers are none of the same person's earlier ones."""
        new = np.ones(len(row), dtype=np.bool_)
        for earlier_row, earlier_u in zip(self.row, self.u, strict=True):
            at = np.searchsorted(earlier_row, row)
            at = np.minimum(at, max(len(earlier_row) - 1, 0))
            if len(earlier_row):
                mine = earlier_row[at] == row
                new &= ~(mine & np.isclose(u, earlier_u[at], rtol=0, atol=1e-9).all(1))
        return new

    def best_first(self) -> tuple[Labels, Rows]:
        """Each person's plans by rising objective."""
        row, u = np.concatenate(self.row), np.concatenate(self.u)
        order = np.lexsort((np.concatenate(self.cost), row))
        return row[order], u[order]


EXPLAINERS.add("gpae", GPAE, paper_name="GPAE")
