"""What every auto-encoder with a linear classifier on its latents can do, however it encodes."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Literal, Protocol, Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from gpae.errors import InputError
from gpae.kernels.cosines import latents, log_densities, logits
from gpae.models.held_out import tenth_without_copies
from gpae.models.parameters import check_parameters, torch_device
from gpae.models.training import Rows
from gpae.numerics.autoencoder import AutoEncoder, logit
from gpae.numerics.density import Tilt, fit_tilt
from gpae.numerics.encoder import Encoder
from gpae.numerics.fourier import Scheme
from gpae.numerics.tiles import in_tiles
from gpae.progress import report

__all__ = ["LatentClassifier", "LatentModel", "default_margin"]


class LatentModel(Encoder, Protocol):
    """An encoder that has a decoder beside it."""

    def decode(self, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """The row that a latent stands for."""
        ...


class LatentClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the auto-encoders as scikit-learn estimators: a sub-class says how the model itself is fitted.

    The model is kept in double precision on the CPU and evaluated in tiles, so that the value of a row does not depend
    on its neighbours.
    """

    latent_dim: int
    class_weight: Literal["balanced"] | dict[Any, float] | None
    density_on: Literal["all", "target"]
    density_features: int
    density_draws: int
    random_state: int | np.random.RandomState | None
    device: str

    classes_: NDArray[Any]
    model_: LatentModel
    density_: Tilt
    logit_spread_: float
    n_features_in_: int
    watched_: NDArray[np.intp]
    """Which training rows decided when to stop, where none were given for that; set by ``fit`` alone."""

    @property
    def _density_scheme(self) -> Scheme:
        """How the density's Fourier map is drawn."""
        return "random"

    def fit(self, X: ArrayLike, y: ArrayLike, *, validation: tuple[ArrayLike, ArrayLike] | None = None) -> Self:
        """Fit the auto-encoder, the classifier and the latent density.

        ``validation`` rows decide what is chosen in fitting and when to stop; None: a tenth of the rows, stratified,
        copies of a row kept together.
        """
        check_parameters(self.get_params())
        rows_in, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            found = "only one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise ValueError(f"Only binary classification is supported: the target has {found}: {self.classes_[:5]}")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rows, valid = self._rows(rows_in, codes, validation, seed)
        return self._fit_parts(rows_in, rows, valid, seed)

    def distil(self, X: ArrayLike, scores: ArrayLike) -> Self:
        """Fit to the scores of another model (probabilities of the second class) instead of labels.

        A tenth of the rows decides what is chosen in fitting and when to stop.
        """
        check_parameters(self.get_params())
        rows_in = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        p = np.asarray(scores, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learn, watch, p_learn, p_watch = (
            train_test_split(rows_in, p, test_size=0.1, random_state=seed) if len(p) >= 50 else (rows_in, rows_in, p, p)
        )
        rows, valid = (self._soft(part, said) for part, said in ((learn, p_learn), (watch, p_watch)))
        return self._fit_parts(rows_in, rows, valid, seed)

    def _soft(self, X: NDArray[Any], scores: NDArray[np.float64]) -> Rows:
        rows = self._tensors(X, (scores > 0.5).astype(np.int64))
        return replace(rows, y=torch.as_tensor(scores, dtype=rows.y.dtype, device=rows.y.device))

    def _fit_parts(self, X: NDArray[Any], rows: Rows, valid: Rows, seed: int) -> Self:
        generator = torch.Generator().manual_seed(seed)
        self.model_ = self._fit_autoencoder(rows, valid, generator)
        self._fit_density(X, generator)
        return self

    @abstractmethod
    def _fit_autoencoder(self, rows: Rows, valid: Rows, generator: torch.Generator) -> LatentModel:
        """Learn from the rows; return the model in double precision on the CPU."""

    def _rows(
        self, X: NDArray[Any], codes: NDArray[Any], validation: tuple[ArrayLike, ArrayLike] | None, seed: int
    ) -> tuple[Rows, Rows]:
        """Training and validation rows as float32 tensors on the device, with their class weights."""
        if validation is not None:
            X_valid = validate_data(self, validation[0], dtype=np.float64, reset=False)
            labels = np.asarray(validation[1])
            if not np.isin(labels, self.classes_).all():
                odd = labels[~np.isin(labels, self.classes_)][0]
                raise InputError(f"the validation labels hold {odd!r}, which is no class of the training labels")
            return self._tensors(X, codes), self._tensors(X_valid, np.searchsorted(self.classes_, labels))
        learn = self.watched_ = np.arange(len(X))
        if len(X) >= 50 and np.bincount(codes).min() >= 10:
            learn, self.watched_ = tenth_without_copies(X, codes, seed)
        return self._tensors(X[learn], codes[learn]), self._tensors(X[self.watched_], codes[self.watched_])

    def _tensors(self, X: NDArray[Any], codes: NDArray[Any]) -> Rows:
        device, kind = torch_device(self.device), torch.float32
        return Rows(
            torch.tensor(np.ascontiguousarray(X), dtype=kind, device=device),
            torch.as_tensor(codes, dtype=kind, device=device),
            torch.as_tensor(self.row_weights(codes), dtype=kind, device=device),
        )

    def row_weights(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """The weight of each row in the cross-entropy, by its class (0 or 1).

        "balanced" is seen from the rows at hand: validation rows may be balanced where training rows are not.
        """
        there = np.unique(codes)
        weights = np.ones(2)
        weights[there] = compute_class_weight(self.class_weight, classes=self.classes_[there], y=self.classes_[codes])
        return np.asarray(weights[codes])

    def _fit_density(self, X: NDArray[Any], generator: torch.Generator) -> None:
        report("fitting the density", 0.0)
        there = self._latents(X)
        g = logit(self.model_, there)
        self.logit_spread_ = max(float(g.std()), 1e-3 / 0.02)
        chosen = there[g > 0] if self.density_on == "target" else there
        if len(chosen) < 2:
            chosen = there
        self.density_ = fit_tilt(
            chosen,
            generator,
            n_features=self.density_features,
            n_draws=self.density_draws,
            n_fresh=2 * self.density_draws,
            scheme=self._density_scheme,
        )
        report("fitting the density", 1.0)

    def _latents(self, X: NDArray[Any]) -> Tensor:
        """Latents in double precision on the CPU: the value of a row does not depend on its neighbours."""
        check_is_fitted(self, "model_")
        rows = _as_rows(X)
        if isinstance(self.model_, AutoEncoder):
            return latents(self.model_, rows)
        (encoded,) = in_tiles(lambda x: (self.model_.encode(x),), (rows,))
        return encoded

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logit g(x) of the second class."""
        check_is_fitted(self, "model_")
        return self.logits(self._validated(X))

    def _validated(self, X: ArrayLike) -> NDArray[np.float64]:
        """Rows of the width that was fitted, all finite; arrays that are so are soon let through."""
        if not isinstance(X, np.ndarray) or X.dtype != np.float64 or hasattr(self, "feature_names_in_"):
            return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        if len(X) and X.shape[1:] == (self.n_features_in_,) and np.isfinite(X).all():
            return X
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def logits(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """:meth:`decision_function` of encoded rows that are known to be sound: a search asks at every step."""
        rows = _as_rows(X)
        if isinstance(self.model_, AutoEncoder):
            return np.asarray(logits(self.model_, rows).numpy())
        (g,) = in_tiles(lambda x: (logit(self.model_, self.model_.encode(x)),), (rows,))
        return np.asarray(g.numpy())

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, one column a class in the order of ``classes_``."""
        g = self.decision_function(X)
        positive = 1 / (1 + np.exp(-np.clip(g, -700, 700)))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class on whose side of g = 0 each row lies."""
        favourable = self.decision_function(X) > 0
        return np.asarray(self.classes_[favourable.astype(int)])

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Encode: the latents, one row a row."""
        check_is_fitted(self, "model_")
        return np.asarray(self._latents(self._validated(X)).numpy())

    def inverse_transform(self, latents: ArrayLike) -> NDArray[np.float64]:
        """Decode latents into encoded rows."""
        check_is_fitted(self, "model_")
        points: NDArray[np.float64] = check_array(latents, dtype=np.float64)
        if points.shape[1] != self.latent_dim:
            raise ValueError(f"latents have {self.latent_dim} columns here, these have {points.shape[1]}")
        (x,) = in_tiles(lambda z: (self.model_.decode(z),), (torch.tensor(np.ascontiguousarray(points)),))
        return np.asarray(x.numpy())

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Log density of each row's latent."""
        return np.asarray(log_densities(self.density_, torch.as_tensor(self.transform(X))).numpy())

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _as_rows(X: NDArray[Any]) -> Tensor:
    """In double precision; copied only where it must be: torch takes no memory that may not be written."""
    return torch.from_numpy(np.require(X, np.float64, ["C", "W"]))


def default_margin(model: LatentClassifier) -> float:
    """0.02 standard deviations of the training logits, at least 1e-3 (E7)."""
    return max(0.02 * model.logit_spread_, 1e-3)
