"""Checks of the auto-encoders' parameters, made before any work starts, and the device that a name stands for."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import torch

from gpae.errors import InputError, one_of

__all__ = ["check_parameters", "torch_device"]

_COUNTS = (
    "latent_dim", "n_features", "n_inducing", "hidden_dim", "batch_size", "max_epochs", "max_steps", "patience",
    "density_features", "density_draws",
)  # fmt: skip
_POSITIVE = ("decoder_length_scale", "reconstruction_weight", "learning_rate")
_POSITIVE_OR_AUTO = ("length_scale", "classification_weight")
_KNOWN = {
    "fourier": ("random", "sobol"),
    "optimiser": ("whitened", "adam"),
    "density_on": ("all", "target"),
    "layers_per_side": (1, 2),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse what cannot be fitted with, naming the parameter and its value; each estimator has its share of them."""
    for name in filter(parameters.__contains__, _COUNTS):
        if not isinstance(parameters[name], Integral) or parameters[name] < 1:
            raise InputError(f"{name}={parameters[name]!r} must be a whole number of at least 1")
    for name in filter(parameters.__contains__, _POSITIVE):
        if not _is_positive(parameters[name]):
            raise InputError(f"{name}={parameters[name]!r} must be a number from 1e-6 to 1e6")
    for name in filter(parameters.__contains__, _POSITIVE_OR_AUTO):
        if parameters[name] != "auto" and not _is_positive(parameters[name]):
            raise InputError(f"{name}={parameters[name]!r} must be 'auto' or a number from 1e-6 to 1e6")
    for name in filter(parameters.__contains__, _KNOWN):
        one_of(name, parameters[name], _KNOWN[name])
    _check_class_weight(parameters["class_weight"])
    torch_device(parameters["device"])


def torch_device(name: str) -> torch.device:
    """``"auto"``: CUDA where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device={name!r} is not known to PyTorch; use 'auto', 'cpu' or 'cuda'") from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device={name!r} is not supported; use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={name!r}: PyTorch sees no CUDA device here; use 'auto' or 'cpu'")
    return device


def _check_class_weight(weight: Any) -> None:
    if not isinstance(weight, dict):
        one_of("class_weight", weight, (None, "balanced"))
        return
    for label, value in weight.items():
        if not _is_positive(value):
            raise InputError(f"class_weight gives {label!r} the weight {value!r}; it must be a number above 0")


def _is_positive(value: object) -> bool:
    """Beyond these limits single precision fails, and nobody means them."""
    return isinstance(value, Real) and 1e-6 <= float(value) <= 1e6
