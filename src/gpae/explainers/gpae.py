"""GPAE: the paper's method, a constrained search in feature space through the auto-encoder's latent space."""

from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.arrays import Labels, Mask, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
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

    def _choose_beta(
        self,
        X: Rows,
        logits: np.ndarray[Any, np.dtype[np.float64]],
        validation: tuple[Rows, Labels] | None,
        generator: np.random.Generator,
    ) -> None:
        """Search refused validation rows (else training rows) at every beta of the grid."""
        self.density_weight_ = None
        pool = X[logits < 0] if validation is None else validation[0]
        pool = pool[self.classifier_.decision_function(pool) < 0] if len(pool) else pool
        if self.beta != "auto" or self.classifier_.latent_dim < 2 or len(pool) < 2:
            self.beta_ = BETA_GRID[0] if self.beta == "auto" else float(self.beta)
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
        fixed = query.fixed
        rows: list[NDArray[np.intp]] = []
        answers: list[Polished] = []
        for number in range(k):
            report("searching", number / k)
            answer = self._one_plan(query, fixed)
            fresh = answer.valid.numpy() & _differs(answer.u.numpy(), [earlier.u.numpy() for earlier in answers])
            rows.append(np.flatnonzero(fresh))
            answers.append(answer)
            fixed = fixed | self._heaviest_change(answer.u.numpy(), query.x)
        report("searching", 1.0)
        row = np.concatenate(rows)
        u = np.concatenate([a.u.numpy()[r] for a, r in zip(answers, rows, strict=True)])
        cost = np.concatenate([a.objective.numpy()[r] for a, r in zip(answers, rows, strict=True)])
        best_first = np.lexsort((cost, row))
        return row[best_first], u[best_first]

    def _one_plan(self, query: Query, fixed: Mask) -> Polished:
        lower, upper = self.layout_.box(query.x, fixed)
        problem = self.problem(Query(query.x, query.target, fixed, lower, upper))
        relaxed = self.relax(problem)
        anchors = torch.as_tensor(self.anchors_)
        if (query.target != 1).any():
            anchors = anchors[:0]
        return polish(self.surface(), problem, self.layout_, relaxed.u, anchors)

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


def _differs(u: Rows, earlier: list[Rows]) -> Mask:
    """Which rows are none of the earlier answers."""
    same = [np.isclose(u, other, rtol=0, atol=1e-9).all(1) for other in earlier]
    return ~np.any(same, axis=0) if same else np.ones(len(u), dtype=np.bool_)


EXPLAINERS.add("gpae", GPAE, paper_name="GPAE")
