"""GPAE with inducing points: the same search through the latent space of a deep Gaussian process."""

from typing import Literal

from sklearn.base import clone

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.density_weight import BETA_GRID
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.inducing_autoencoder import InducingGPAEClassifier
from gpae.models.learnt_search import LearntSearch, SearchSettings, WithLearntSearch
from gpae.search.plans import Solver
from gpae.search.problem import Surface
from gpae.table.layout import Layout

__all__ = ["GPAEInducing"]


class GPAEInducing(WithLearntSearch, Explainer):
    """The search of :class:`~gpae.explainers.gpae.GPAE` with another encoder.

    **Objective.** For each row x, with s the side of the target class and lambda the posterior mean of a deep Gaussian
    process with inducing points,

        min_u  1/2 |u - x|^2 - beta log p(lambda(u))   s.t.   s g(u) = margin,   lower <= u <= upper.

    **Differs from the paper.** All that GPAE differs in. The layers' means are kept after training (a = K^-1 times the
    mean inducing values), so that a step of the search costs no factorisation, solve or variance;
    ``cached=False`` evaluates the whole predictive distribution in every step, as the paper timed it. Both give the
    same answers up to rounding. Decisions are those of the mean path; draws through the layers serve in training only.

    Parameters
    ----------
    classifier
        An :class:`~gpae.models.inducing_autoencoder.InducingGPAEClassifier`, fitted or not; or a
        :class:`~gpae.models.gp_autoencoder.GPAEClassifier`, of which only the settings are used that both have
        (latent, loss, density, seed); None: the defaults.
    n_inducing, layers_per_side, hidden_dim, max_steps
        Of the deep Gaussian process, where ``classifier`` is not one already.
    beta, margin, solver, divergence, beta_grid
        As for GPAE.
    cached
        False: evaluate gpytorch's model in every step of the search (slow; it is there to be timed).
    """

    classifier_: InducingGPAEClassifier

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | InducingGPAEClassifier | None = None,
        n_inducing: int = 128,
        layers_per_side: Literal[1, 2] = 2,
        hidden_dim: int = 10,
        max_steps: int = 300,
        beta: float | Literal["auto"] = "auto",
        margin: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        divergence: Literal["corrected", "literal"] = "corrected",
        beta_grid: tuple[float, ...] = BETA_GRID,
        cached: bool = True,
    ) -> None:
        self.classifier = classifier
        self.n_inducing = n_inducing
        self.layers_per_side = layers_per_side
        self.hidden_dim = hidden_dim
        self.max_steps = max_steps
        self.beta = beta
        self.margin = margin
        self.solver = solver
        self.divergence = divergence
        self.beta_grid = beta_grid
        self.cached = cached

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        settings = SearchSettings(self.beta, self.margin, self.solver, self.divergence, self.beta_grid)
        settings.check()
        model = self._own_classifier()
        if not hasattr(model, "model_"):
            model = model.fit(X, y, validation=validation)
        self.search_ = LearntSearch.learn(model, self.layout_, X, validation, settings)
        return model

    def _own_classifier(self) -> InducingGPAEClassifier:
        """The one that was given if it is fitted, else a new one."""
        given = self.classifier
        if isinstance(given, InducingGPAEClassifier):
            return given if hasattr(given, "model_") else clone(given)
        return InducingGPAEClassifier.like(
            GPAEClassifier() if given is None else given,
            n_inducing=self.n_inducing,
            layers_per_side=self.layers_per_side,
            hidden_dim=self.hidden_dim,
            max_steps=self.max_steps,
        )

    def surface(self) -> Surface:
        """What the search walks on."""
        model = self.classifier_
        return Surface(model.model_ if self.cached else model.predictive_encoder(), model.density_)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        search = self.search_.on(self.surface(), self.layout_, self.solver)
        return search.plans(query.x, query.target, query.lower, query.upper, k)

    def state(self) -> State:
        """The classifier's state and the search's own figures."""
        return self.search_.state().with_part("classifier", self.classifier_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.classifier_ = InducingGPAEClassifier.from_state(state.part("classifier"))
        self.search_ = LearntSearch.from_state(state)


EXPLAINERS.add("gpae-inducing", GPAEInducing, paper_name="GPAE-ind")
