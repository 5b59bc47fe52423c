"""A table so small that every row of it can be listed, and rules for it."""

from itertools import product
from typing import Any

import numpy as np

from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=20, maximum=24),
        Integer(name="debt", minimum=0, maximum=6, step=2, codes=(-9.0,)),
        Integer(name="income", minimum=0, maximum=5, missing=True),
        Ordinal(name="degree", levels=("school", "bachelor", "master")),
        Categorical(name="job", levels=("a", "b"), missing=True),
    ),
    label="loan",
    favourable="yes",
)
VALUES = [
    [20.0, 21, 22, 23, 24],
    [-9.0, 0, 2, 4, 6],
    [0.0, 1, 2, 3, 4, 5, np.nan],
    [0.0, 1, 2],
    [0.0, 1, np.nan],
]
EVERY = np.array(list(product(*VALUES)))
RULES: list[Any] = [
    "debt <= income",
    "age - debt >= 19",
    "2 * debt = 4 * income - 4",
    {"kind": "range", "feature": "age", "minimum": 21, "maximum": 23},
    {"kind": "range", "feature": "debt", "maximum": 2},
    {"kind": "within", "feature": "income", "up": 1, "down": 2},
    {"kind": "direction", "feature": "debt", "change": "down"},
    {"kind": "direction", "feature": "age", "change": "up"},
    {"kind": "transitions", "feature": "degree", "allowed": {"school": ["master"]}, "otherwise": "none"},
    {"kind": "one_of", "feature": "job", "levels": ["b"]},
    {"kind": "implies", "when": "degree", "then": "age", "then_change": "up", "by": 2},
    {"kind": "implies", "when": "income", "when_change": "up", "then": "debt"},
    {"kind": "implies", "when": "job", "then": "income", "by": 2},
    {"kind": "at_most", "changes": 2},
    {"kind": "at_most", "changes": 1, "features": ["age", "job"]},
    {"kind": "step", "feature": "age", "step": 2},
    {"kind": "fixed", "features": ["income"]},
]


def asked(rules: list[Any], own: np.ndarray) -> tuple[Freedom, Layout]:
    layout = Layout.fit(SCHEMA, list(EVERY.T))
    return Freedom.of(layout, SCHEMA, read_constraints(rules), layout.encode(own[None])), layout


def allowed(free: Freedom, layout: Layout) -> np.ndarray:
    """Every row that the person may become, by asking about each."""
    many = free.rows(np.zeros(len(EVERY), dtype=np.intp))
    return EVERY[many.permits(layout.encode(EVERY))]
