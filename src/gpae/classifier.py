"""What can be explained: anything that gives class probabilities for encoded rows."""

from typing import Protocol, runtime_checkable

from gpae.arrays import Probabilities, Rows

__all__ = ["Classifier"]


@runtime_checkable
class Classifier(Protocol):
    """A fitted two-class classifier on encoded rows; the second column is the favourable class."""

    def predict_proba(self, X: Rows) -> Probabilities:
        """Class probabilities, B x 2."""
        ...
