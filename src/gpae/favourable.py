"""What the rows that the model favours look like: the yardstick for a plan's plausibility, and its backdrop."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import Rows
from gpae.table.codec import Codec
from gpae.table.schema import Continuous, Integer

__all__ = ["FavourableRows"]

_QUANTILES = 101
_SOME = 5000


@dataclass(frozen=True, slots=True, eq=False)
class FavourableRows:
    """Log densities and each feature's distribution among the training rows predicted favourable."""

    log_densities: NDArray[np.float64]
    """Sorted."""
    distributions: NDArray[np.float64]
    """F x 101: evenly spaced quantiles of a numeric feature; shares of the first levels of any other."""
    some: Rows
    """At most 5,000 of the rows themselves, encoded."""

    @classmethod
    def of(cls, rows: Rows, log_densities: NDArray[np.float64], codec: Codec) -> "FavourableRows":
        """Learn from encoded rows and the log density of each."""
        drawn = np.random.Generator(np.random.Philox(len(rows))).permutation(len(rows))[:_SOME]
        values = codec.layout.to_user(rows)
        distributions = np.full((values.shape[1], _QUANTILES), np.nan)
        for i, feature in enumerate(codec.schema.features):
            known = values[~np.isnan(values[:, i]), i]
            if isinstance(feature, Continuous | Integer):
                distributions[i] = np.quantile(known, np.linspace(0, 1, _QUANTILES)) if len(known) else np.nan
            else:
                shares = np.bincount(known.astype(int), minlength=len(feature.levels)) / max(len(known), 1)
                distributions[i, : len(shares)] = shares[:_QUANTILES]
        return cls(np.sort(log_densities), distributions, rows[np.sort(drawn)])

    def percentile(self, log_density: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many in a hundred favourable training rows are no denser."""
        below = np.searchsorted(self.log_densities, log_density, side="right")
        return 100 * below / len(self.log_densities)
