"""An explainer of a data set's training rows, as large as the paper's."""

from dataclasses import asdict
from typing import Any

from gpae.benchmark.studies.ablation import PAPER
from gpae.dataset import Dataset
from gpae.tabular import TabularExplainer

__all__ = ["PAPER_SIZE", "fitted"]

PAPER_SIZE = asdict(PAPER)


def fitted(dataset: Dataset, seed: int, features: tuple[str, ...] | None = None, **settings: Any) -> TabularExplainer:
    """Fit to all features or some; the paper's size is the caller's to ask for."""
    kept = dataset.features if features is None else features
    explainer = TabularExplainer(
        label=dataset.label,
        favourable=dataset.favourable,
        immutable=[name for name in dataset.masked if name in kept],
        seed=seed,
        **settings,
    )
    return explainer.fit(dataset.split(seed=seed)[0][[*kept, dataset.label]])
