"""Checks of the GPAE's parameters, made before any work starts, and the device that a name stands for."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import torch

from gpae.errors import InputError, one_of

__all__ = ["check_parameters", "torch_device"]

_COUNTS = ("latent_dim", "n_features", "batch_size", "max_epochs", "patience", "density_features", "density_draws")
_POSITIVE = ("decoder_length_scale", "reconstruction_weight", "learning_rate")
_POSITIVE_OR_AUTO = ("length_scale", "classification_weight")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse what cannot be fitted with, naming the parameter and its value."""
    for name in _COUNTS:
        if not isinstance(parameters[name], Integral) or parameters[name] < 1:
            raise InputError(f"{name}={parameters[name]!r} must be a whole number of at least 1")
    for name in _POSITIVE:
        if not _is_positive(parameters[name]):
            raise InputError(f"{name}={parameters[name]!r} must be a number above 0")
    for name in _POSITIVE_OR_AUTO:
        if parameters[name] != "auto" and not _is_positive(parameters[name]):
            raise InputError(f"{name}={parameters[name]!r} must be 'auto' or a number above 0")
    one_of("fourier", parameters["fourier"], ("random", "sobol"))
    one_of("density_on", parameters["density_on"], ("all", "target"))
    if not isinstance(parameters["class_weight"], dict):
        one_of("class_weight", parameters["class_weight"], (None, "balanced"))
    torch_device(parameters["device"])


def torch_device(name: str) -> torch.device:
    """``"auto"``: CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device={name!r} is not known to PyTorch; use 'auto', 'cpu' or 'cuda'") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={name!r}: PyTorch sees no CUDA device here; use 'auto' or 'cpu'")
    return device


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf
