"""What the search through a latent space learns from the training rows: its margin, its anchors and beta."""

from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.arrays import Labels, Mask, Rows
from gpae.artefact import State
from gpae.errors import InputError, one_of
from gpae.models.density_weight import DensityWeight, choose_density_weight
from gpae.models.latent_classifier import LatentClassifier, default_margin
from gpae.search.experience import Experience
from gpae.search.plans import PlanSearch, Solver
from gpae.search.problem import Surface
from gpae.table.layout import Layout

__all__ = ["LearntSearch", "SearchSettings", "Units", "WithLearntSearch"]

Units = Literal["encoded", "deviations"]
"""In which ways are measured: encoded columns, or standard deviations of the training rows' numbers."""

_ANCHORS = 2000
_SELECTION_ROWS = 300
_SEARCHED_BEFORE = 1000


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a user may say about the search; the methods' docstrings explain each."""

    beta: float | Literal["auto"]
    margin: float | Literal["auto"]
    solver: Solver
    divergence: Literal["corrected", "literal"]
    beta_grid: tuple[float, ...]
    units: Units = "encoded"

    def check(self) -> None:
        """Refuse what cannot be searched with, naming the parameter and its value."""
        one_of("solver", self.solver, ("newton", "reference"))
        one_of("units", self.units, ("encoded", "deviations"))
        one_of("divergence", self.divergence, ("corrected", "literal"))
        for name, least in (("beta", 0.0), ("margin", 1e-9)):
            value = getattr(self, name)
            if value != "auto" and not (isinstance(value, Real) and least <= float(value) < np.inf):
                raise InputError(f"{name}={value!r} must be 'auto' or a number of at least {least:g}")
        if not len(self.beta_grid) or not all(0 <= beta < np.inf for beta in self.beta_grid):
            raise InputError(f"beta_grid={self.beta_grid!r} must hold at least one number, none below 0")


@dataclass(frozen=True, slots=True, eq=False)
class LearntSearch:
    """The figures that the search takes from the training rows, and the curve behind beta if it was chosen."""

    beta: float
    margin: float
    anchors: Rows
    """Rows that the classifier puts on the favourable side by more than the margin, and"""
    refused: Rows
    """on the other side: the same for people who ask what would lead there."""
    density_weight: DensityWeight | None
    units: Float[Tensor, " D"] | None = None
    """By what columns are multiplied before a way is measured."""
    experience: Experience | None = None

    @classmethod
    def learn(
        cls,
        model: LatentClassifier,
        layout: Layout,
        X: Rows,
        validation: tuple[Rows, Labels] | None,
        settings: SearchSettings,
    ) -> "LearntSearch":
        """Set the margin, draw the anchors and choose beta for a fitted classifier."""
        logits = model.decision_function(X)
        margin = default_margin(model) if settings.margin == "auto" else float(settings.margin)
        generator = np.random.Generator(np.random.Philox(_seed_of(model)))
        anchors = _some(X, logits > margin, generator)
        refused = _some(X, logits < -margin, np.random.Generator(np.random.Philox(_seed_of(model) + 1)))
        given = float(settings.beta_grid[0] if settings.beta == "auto" else settings.beta)
        units = None if settings.units == "encoded" else _one_deviation(layout, X)
        learnt = cls(given, margin, anchors, refused, None, units)
        pool = X[logits < 0] if validation is None else validation[0]
        pool = pool[model.decision_function(pool) < 0] if len(pool) else pool
        if settings.beta == "auto" and model.latent_dim >= 2 and len(pool) >= 2:
            choice = learnt._choice_of_beta(model, layout, X, pool, settings, generator)
            learnt = learnt if choice is None else replace(learnt, beta=choice.beta, density_weight=choice)
        return learnt._with_experience(model, layout, settings)

    def _with_experience(self, model: LatentClassifier, layout: Layout, settings: SearchSettings) -> "LearntSearch":
        """Search for some refused training rows; the paper's own solver begins where it began."""
        rows = self.refused[:_SEARCHED_BEFORE]
        if settings.solver != "newton" or not len(rows):
            return self
        search = self.on(Surface(model.model_, model.density_), layout, settings.solver)
        problem = search.problem(rows, np.ones(len(rows), np.int64), *layout.box(rows))
        return replace(self, experience=Experience.of(search.surface, problem))

    def _choice_of_beta(
        self,
        model: LatentClassifier,
        layout: Layout,
        X: Rows,
        pool: NDArray[np.float64],
        settings: SearchSettings,
        generator: np.random.Generator,
    ) -> DensityWeight | None:
        """Search refused validation rows (else training rows) at every beta of the grid."""
        rows = pool[np.sort(generator.permutation(len(pool))[:_SELECTION_ROWS])]
        surface = Surface(model.model_, model.density_)
        search = self.on(surface, layout, settings.solver)
        return choose_density_weight(
            search.surface,
            search.problem(rows, np.ones(len(rows), np.int64), *layout.box(rows)),
            torch.as_tensor(model.transform(X)),
            torch.Generator().manual_seed(int(generator.integers(2**31))),
            grid=tuple(settings.beta_grid),
            estimator=settings.divergence,
        )

    def on(self, surface: Surface, layout: Layout, solver: Solver) -> PlanSearch:
        """The search itself, on a surface, in these units."""
        surface = replace(surface, units=self.units)
        known = self.experience if solver == "newton" else None
        return PlanSearch(surface, layout, self.beta, self.margin, self.anchors, self.refused, solver, known)

    def state(self) -> State:
        """What has to be saved."""
        rows = {"anchors": self.anchors, "refused": self.refused}
        if self.units is not None:
            rows["units"] = self.units.numpy()
        if self.experience is not None:
            rows |= {f"experience.{name}": part.numpy() for name, part in asdict(self.experience).items()}
        state = State(rows, {"beta": self.beta, "margin": self.margin})
        if self.density_weight is None:
            return state
        curve = asdict(self.density_weight)
        return state.with_part("density_weight", State(curve, {"beta": curve.pop("beta")}))

    @classmethod
    def from_state(cls, state: State) -> "LearntSearch":
        """Rebuild from :meth:`state`; what else is in the state is left alone."""
        choice = None
        if "density_weight" in state.values:
            curve = state.part("density_weight")
            choice = DensityWeight(**(curve.arrays | curve.values))
        anchors, refused = state.arrays["anchors"], state.arrays["refused"]
        units = torch.as_tensor(state.arrays["units"]) if "units" in state.arrays else None
        known = [state.arrays.get(f"experience.{name}") for name in ("latents", "ways")]
        experience = None if known[0] is None else Experience(*map(torch.as_tensor, known))
        return cls(state.values["beta"], state.values["margin"], anchors, refused, choice, units, experience)


class WithLearntSearch:
    """The figures of a learnt search, by the names that a fitted method gives them."""

    search_: LearntSearch

    @property
    def beta_(self) -> float:
        """The weight of the log density, given or chosen."""
        return self.search_.beta

    @property
    def margin_(self) -> float:
        """The margin in logit units."""
        return self.search_.margin

    @property
    def density_weight_(self) -> DensityWeight | None:
        """The curve behind beta, where it was chosen."""
        return self.search_.density_weight


def _some(X: Rows, which: Mask, generator: np.random.Generator) -> Rows:
    return X[np.sort(generator.permutation(np.flatnonzero(which))[:_ANCHORS])]


def _one_deviation(layout: Layout, X: Rows) -> Float[Tensor, " D"]:
    """One over the standard deviation of each number; 1 for what is no number, or always the same."""
    spread = X.std(axis=0)
    number = layout.continuous & (spread > 0)
    return torch.as_tensor(np.where(number, 1.0 / np.where(number, spread, 1.0), 1.0))


def _seed_of(model: LatentClassifier) -> int:
    return model.random_state if isinstance(model.random_state, int) else 0
