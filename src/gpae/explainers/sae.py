"""SAE: mirror the person in the boundary of a supervised auto-encoder's latent space, and decode."""

from typing import Literal

import numpy as np

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.supervised_autoencoder import SupervisedAutoencoder
from gpae.search.rounding import finalised
from gpae.table.layout import Layout

__all__ = ["SAE"]


class SAE(Explainer):
    """One step across the boundary of a supervised auto-encoder, in closed form.

    **Objective.** With lambda the person's latent, theta and theta_0 the coefficients of the probit on the latents,

        lambda' = lambda - step (theta' lambda + theta_0) / |theta|^2 theta,        x' = decode(lambda'),

    on the boundary for step = 1, the mirror point for step = 2. The row is rounded into the person's bounds, the fixed
    features included, and judged. What the decoder gives need not be encoded again to the same side: those rows are not
    found. The auto-encoder is :class:`gpae.models.supervised_autoencoder.SupervisedAutoencoder`.

    **Differs from the paper.** The bound that the auto-encoder is trained by, see there. The paper has this method
    explain its own model only; ``labels="model"`` trains it on the labels that the GPAE's classifier gives, and
    that classifier judges. There, a person whom the auto-encoder sees on the target's side already is only decoded.

    Parameters
    ----------
    classifier
        The classifier to explain with ``labels="model"``, fitted or not; None: a :class:`GPAEClassifier` with its
        defaults. With ``labels="data"`` only its seed matters.
    labels
        ``"data"``: the auto-encoder is the classifier. ``"model"``: it learns the explained classifier's labels.
    step
        Multiples of the way to the boundary.
    latent_dim, noise, label_weight, max_epochs
        Of the auto-encoder.
    """

    classifier_: SupervisedAutoencoder | GPAEClassifier
    autoencoder_: SupervisedAutoencoder

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        labels: Literal["data", "model"] = "data",
        step: float = 2.0,
        latent_dim: int = 4,
        noise: float = 0.1,
        label_weight: float = 30.0,
        max_epochs: int = 60,
    ) -> None:
        self.classifier = classifier
        self.labels = labels
        self.step = step
        self.latent_dim = latent_dim
        self.noise = noise
        self.label_weight = label_weight
        self.max_epochs = max_epochs

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        one_of("labels", self.labels, ("data", "model"))
        if not (np.isfinite(self.step) and self.step > 1):
            raise InputError(f"step={self.step!r} must be a number above 1, where the boundary is")
        if self.labels == "data":
            self.autoencoder_ = self._autoencoder(X, y, validation)
            return self.autoencoder_
        explained = explained_classifier(self.classifier, X, y, validation)
        said = _said(explained, X)
        if len(np.unique(said)) < 2:
            raise InputError("the explained classifier gives all rows the same label; labels='model' needs both")
        watched = None if validation is None else (validation[0], _said(explained, validation[0]))
        self.autoencoder_ = self._autoencoder(X, said, watched)
        return explained

    def _autoencoder(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> SupervisedAutoencoder:
        given = None if self.classifier is None else self.classifier.random_state
        model = SupervisedAutoencoder(
            self.latent_dim,
            noise=self.noise,
            label_weight=self.label_weight,
            max_epochs=self.max_epochs,
            random_state=given if isinstance(given, int) else 0,
        )
        return model.fit(X, y, layout=self.layout_, validation=validation)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        model = self.autoencoder_
        latent = model.transform(query.x)
        there = (2 * query.target - 1) * model.decision_function(query.x) > 0
        latent = np.where(there[:, None], latent, model.stepped(latent, self.step))
        row = finalised(self.layout_, model.inverse_transform(latent), query.x, query.lower, query.upper)
        return np.arange(len(row)), row

    def state(self) -> State:
        """The auto-encoder, and the classifier where that is another."""
        state = State({}, {}).with_part("autoencoder", self.autoencoder_.state())
        if isinstance(self.classifier_, GPAEClassifier):
            state = state.with_part("classifier", self.classifier_.state())
        return state

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.autoencoder_ = SupervisedAutoencoder.from_state(state.part("autoencoder"))
        own = "classifier" not in state.values
        self.classifier_ = self.autoencoder_ if own else GPAEClassifier.from_state(state.part("classifier"))


def _said(classifier: GPAEClassifier, X: Rows) -> Labels:
    return (classifier.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


EXPLAINERS.add("sae", SAE, paper_name="SAE")
