"""An attempt to refute a proof: rows that a person may become, drawn at random, and asked of the model itself."""

from typing import Any

import numpy as np

from gpae.proofs.certificate import plain_row
from gpae.search.refine import Logits
from gpae.search.repair import repaired
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom
from gpae.table.level_block import LevelBlock

__all__ = ["challenged"]

_TO_AN_END = 0.3
"""Of the numbers, the share that is drawn at either end of what is allowed: there models say most."""
_STAYS = 0.2
"""Of the features, the share that does not change."""


def challenged(person: Freedom, logits: Logits, needed: float, draws: int, seed: int) -> dict[str, Any]:
    """Draw so many rows of the one person, keep those that are allowed, and ask for the largest logit among them."""
    rng = np.random.Generator(np.random.Philox(seed))
    many = person.rows(np.zeros(draws, dtype=np.intp))
    U, allowed = repaired(many, _drawn(many, rng))
    U = U[allowed]
    said = logits(person, np.zeros(len(U), dtype=np.intp), U) if len(U) else np.zeros(0)
    best = float(said.max(initial=-np.inf))
    return {
        "asked": len(U),
        "best": best if len(U) else None,
        "needed": needed,
        "holds": not best > needed,
        "best_row": plain_row(person, U[[said.argmax()]]) if len(U) else None,
    }


def _drawn(many: Freedom, rng: np.random.Generator) -> Array:
    """Rows somewhere between the bounds, or at them; not yet on allowed values."""
    shape = many.x.shape
    share = np.clip(rng.uniform(-_TO_AN_END, 1.0 + _TO_AN_END, shape), 0.0, 1.0)
    U = many.lower + share * (many.upper - many.lower)
    for block in many.layout.features:
        if isinstance(block, LevelBlock):  # the open level of the largest draw
            open_ = many.upper[:, block.columns] > 0
            draw = np.where(open_, rng.random(open_.shape), -1.0)
            U[:, block.columns] = (draw == draw.max(axis=1, keepdims=True)) & open_
        stays = rng.random(len(U)) < _STAYS
        U[stays, block.columns] = many.x[stays, block.columns]
    return U
