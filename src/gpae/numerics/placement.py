"""Move a frozen dataclass of tensors, nested ones included, to another device or precision."""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

__all__ = ["moved"]

T = TypeVar("T")


def moved(value: T, *, device: torch.device | str, dtype: torch.dtype) -> T:
    """Return a copy of ``value`` with every tensor in it on ``device``, in ``dtype``, laid out as a file does.

    Products of the same numbers laid out otherwise may have other last bits.
    """

    def convert(part: Any) -> Any:
        if isinstance(part, Tensor):
            return part.to(device, dtype).contiguous()
        return moved(part, device=device, dtype=dtype) if is_dataclass(part) else part

    return replace(value, **{f.name: convert(getattr(value, f.name)) for f in fields(value)})  # type: ignore
