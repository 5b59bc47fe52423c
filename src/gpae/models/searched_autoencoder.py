"""The auto-encoder that a method searches in: the given one, if it fits the rows, or a new one fitted to them."""

from typing import Literal, get_args

import numpy as np
from sklearn.base import clone

from gpae.arrays import Labels, Mask, Rows
from gpae.errors import InputError, one_of
from gpae.models.vae import VAE
from gpae.models.vae_network import Objective
from gpae.table.layout import Layout
from gpae.table.schema import Change

__all__ = ["check_columns", "check_fixed", "fitted_vae", "fixed_columns"]


def fixed_columns(layout: Layout) -> Mask:
    """Which encoded columns (D) belong to features that the schema fixes."""
    return np.concatenate([np.full(block.width, block.change is Change.fixed) for block in layout.features])


def check_columns(n_columns: int, layout: Layout) -> None:
    """Refuse an auto-encoder that was fitted to another number of columns."""
    if n_columns != layout.width:
        raise InputError(
            f"the auto-encoder was fitted to {n_columns} columns, these rows have {layout.width}; "
            "fit it to the same encoded rows, or give one that is not fitted"
        )


def check_fixed(fixed: Mask, layout: Layout) -> None:
    """Refuse an auto-encoder that was fitted to other columns, or with others of them fixed."""
    check_columns(len(fixed), layout)
    if (fixed != fixed_columns(layout)).any():
        raise InputError(
            "the auto-encoder was fitted with other fixed columns than the schema has; fit it with the same, or give "
            "one that is not fitted"
        )


def fitted_vae(
    autoencoder: VAE | None,
    X: Rows,
    layout: Layout,
    validation: tuple[Rows, Labels] | None,
    *,
    objective: Objective,
    preset: Literal["carla"] | None,
    seed: int,
) -> VAE:
    """Return the auto-encoder itself if it is fitted, else a copy of it (or of the default) fitted to the rows.

    ``objective``, ``preset`` and ``seed`` describe the default.
    """
    if autoencoder is None:
        autoencoder = _default(objective, preset, seed)
    if not hasattr(autoencoder, "losses_"):
        held_out = None if validation is None else validation[0]
        return clone(autoencoder).fit(X, fixed=fixed_columns(layout), validation=held_out)
    check_fixed(autoencoder.fixed_, layout)
    return autoencoder


def _default(objective: Objective, preset: Literal["carla"] | None, seed: int) -> VAE:
    one_of("objective", objective, get_args(Objective))
    if preset is None:
        return VAE(objective=objective, random_state=seed)
    return VAE.carla("carla_legacy" if objective == "carla_legacy" else "carla", random_state=seed)
