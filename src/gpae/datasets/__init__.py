"""The data sets of the paper, one file each.

A new one is a file in this folder that defines ``DATASET``; it is found by being there.
"""

from importlib import import_module
from pkgutil import iter_modules

from gpae.dataset import Dataset
from gpae.registry import Registry

__all__ = ["DATASETS", "load"]

DATASETS: Registry[Dataset] = Registry("data set")

for _module in iter_modules(__path__):
    _entry: Dataset = import_module(f"{__name__}.{_module.name}").DATASET
    DATASETS.add(_entry.name, _entry, paper_name=_entry.paper_name)


def load(name: str) -> Dataset:
    """Return a data set by its name or by the name the paper prints; no file is read yet.

    Examples
    --------
    >>> load("adult").label
    'income'
    >>> load("FICO").favourable
    'Good'
    """
    return DATASETS[name]
