"""The classifier that a post-hoc method explains."""

from sklearn.base import clone

from gpae.arrays import Labels, Rows
from gpae.models.gp_autoencoder import GPAEClassifier

__all__ = ["explained_classifier"]


def explained_classifier(
    classifier: GPAEClassifier | None, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None
) -> GPAEClassifier:
    """Return the classifier itself if it is fitted, else a copy of it (or of the default) fitted to the rows."""
    if classifier is not None and hasattr(classifier, "model_"):
        return classifier
    fresh = GPAEClassifier() if classifier is None else clone(classifier)
    return fresh.fit(X, y, validation=validation)
