"""Counterfactual explanations and recourse on tabular data.

The public names are imported on first use, so that ``gpae --help`` does not pay for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpae.waiting import wait_briefly

if TYPE_CHECKING:
    from gpae import datasets as datasets
    from gpae.models.gp_autoencoder import GPAEClassifier as GPAEClassifier
    from gpae.table.schema import Binary as Binary
    from gpae.table.schema import Categorical as Categorical
    from gpae.table.schema import Change as Change
    from gpae.table.schema import Continuous as Continuous
    from gpae.table.schema import Integer as Integer
    from gpae.table.schema import Ordinal as Ordinal
    from gpae.table.schema import Schema as Schema
    from gpae.tabular import TabularExplainer as TabularExplainer

__version__ = "0.1.0"

_HOMES = {
    "TabularExplainer": "gpae.tabular",
    "GPAEClassifier": "gpae.models.gp_autoencoder",
    "Schema": "gpae.table.schema",
    "Continuous": "gpae.table.schema",
    "Integer": "gpae.table.schema",
    "Ordinal": "gpae.table.schema",
    "Categorical": "gpae.table.schema",
    "Binary": "gpae.table.schema",
    "Change": "gpae.table.schema",
}

__all__ = [
    "Binary",
    "Categorical",
    "Change",
    "Continuous",
    "GPAEClassifier",
    "Integer",
    "Ordinal",
    "Schema",
    "TabularExplainer",
    "datasets",
]


wait_briefly()  # before PyTorch is loaded


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("gpae.datasets")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gpae' has no attribute {name!r}")
