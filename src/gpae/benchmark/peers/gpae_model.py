"""A fitted GPAE classifier as a plain model: the same decisions, from arrays that any Python can read.

The classifier sees min-max numbers, levels one-hot, two levels as 0 and 1, and what is missing as one more level. All
of that is linear in the plain columns (standardised numbers, one-hot levels), so it goes into the frequencies and
phases of the Fourier features.
"""

from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.peers.plain.columns import UNKNOWN, Array
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.errors import InputError
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.layout import Block
from gpae.table.scaling import MinMax
from gpae.table.schema import Change, Continuous, Feature, Integer
from gpae.table.value_block import ValueBlock
from gpae.tabular import TabularExplainer

__all__ = ["plain_gpae"]


def plain_gpae(explainer: TabularExplainer, train: pd.DataFrame) -> PlainModel:
    """Rewrite the classifier that an explainer fitted to training rows; numbers are standardised on these."""
    features, blocks = explainer.schema_.features, explainer.codec_.layout.features
    numbers = [feature for feature in features if isinstance(feature, Continuous | Integer)]
    others = [feature for feature in features if not isinstance(feature, Continuous | Integer)]
    names = [feature.name for feature in numbers]
    values = train[names].to_numpy(dtype=float)
    mean, std = values.mean(axis=0), values.std(axis=0)
    meta = {
        "kind": "gpae",
        "numbers": names,
        "levels": {feature.name: sorted(_in_order(feature)) for feature in others},
        "codes": {feature.name: list(feature.codes) for feature in numbers if feature.codes},
        "label": explainer.label,
        "immutable": [feature.name for feature in features if feature.change is Change.fixed],
    }
    by_name = {block.name: block for block in blocks}
    maps = [_number_map(by_name[name], mean[i], std[i]) for i, name in enumerate(names)]
    maps += [_level_map(by_name[f.name], f) for f in others]
    scale = {"mean": mean, "std": std}
    return PlainModel(meta, scale | _arrays(explainer.method_.classifier_, explainer.codec_.layout.width, maps))


Map = tuple[slice, Array, Array]
"""Which encoded columns, a matrix (plain x encoded columns) and a shift: encoded = plain @ matrix + shift."""


def _arrays(classifier: Any, width: int, maps: list[Map]) -> dict[str, Array]:
    if not isinstance(classifier, GPAEClassifier):
        raise InputError("only a GPAE classifier has Fourier features; fit the explainer with method='gpae'")
    model = classifier.model_
    Z = model.encoder.frequencies.numpy()
    shift = np.zeros(width)
    for columns, _, offset in maps:
        shift[columns] = offset
    return {
        "frequencies": np.concatenate([matrix @ Z[:, columns].T for columns, matrix, _ in maps]),
        "phases": model.encoder.phases.numpy() + Z @ shift,
        "weights": model.encoder.amplitude * model.logit_weights.numpy(),
        "bias": model.theta0.numpy(),
    }


def _number_map(block: Block, mean: float, std: float) -> Map:
    if not isinstance(block, ValueBlock) or not isinstance(block.scaling, MinMax) or block.missing:
        raise InputError(
            f"column {block.name!r} has gaps or a scale other than min-max, which the plain model does not know; "
            "leave the column out"
        )
    reach = block.scaling.high - block.scaling.low
    return block.columns, np.array([[std / reach]]), np.array([(mean - block.scaling.low) / reach])


def _level_map(block: Block, feature: Feature) -> Map:
    """What each level is encoded as, one line a level."""
    if isinstance(block, ValueBlock) and block.missing:
        raise InputError(f"column {block.name!r} has an order and gaps, which the plain model does not know")
    in_order = _in_order(feature)
    ranks = np.array([in_order.index(level) for level in sorted(in_order)], dtype=float)
    return block.columns, block.encode(ranks), np.zeros(block.width)


def _in_order(feature: Feature) -> list[str]:
    """Levels as they are encoded: what is missing comes last."""
    assert not isinstance(feature, Continuous | Integer)
    return [str(level) for level in feature.levels] + ([UNKNOWN] if feature.missing else [])
