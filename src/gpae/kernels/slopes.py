"""A logit and its gradient in single precision: compiled (slopes.c) where that can be, by torch in tiles elsewhere.

What a search by gradient descent asks for at every step.
"""

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.packing import MACROS, SHEAF, agree, in_sheaves, pointers
from gpae.kernels.threads import from_one_queue
from gpae.numerics.autoencoder import AutoEncoder, encode, logit, logit_with_gradient
from gpae.numerics.placement import moved

__all__ = ["CompiledSlopes", "Slope"]

_AGREES = 1e-4
"""How far a logit or a slope may be from torch's, relative to the largest, for the library to be believed."""


class _Logit(ctypes.Structure):
    _fields_ = (("sizes", ctypes.c_int64 * 2), ("tables", ctypes.c_void_p * 4))


@dataclass(frozen=True, slots=True, eq=False)
class CompiledSlopes:
    """An encoder and the linear classifier behind it as slopes.c wants them."""

    library: ctypes.CDLL
    tables: tuple[NDArray[Any], ...]
    logit: _Logit

    @classmethod
    def of(cls, model: AutoEncoder) -> "CompiledSlopes | None":
        """Pack them; None where there is no library for them, or one that does not agree with torch."""
        compiled = library("slopes.c", **MACROS["single"])
        if compiled is None or model.theta.is_cuda:
            return None
        fmap, v = model.encoder, model.encoder.amplitude * model.logit_weights
        S, D = fmap.frequencies.shape
        more = -S % SHEAF
        given = (
            in_sheaves(np.pad(fmap.frequencies.numpy(), ((0, more), (0, 0)))),
            np.pad(fmap.phases.numpy(), (0, more)),
            np.pad(v.numpy(), (0, more)),
            model.theta0.reshape(1).numpy(),
        )
        tables = tuple(np.ascontiguousarray(part, dtype=np.float32) for part in given)
        packed = cls(compiled, tables, _Logit((S + more, D), pointers(tables)))
        return packed if packed._agrees(model) else None

    def __call__(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
        """Return g and dg / dx."""
        rows = x.detach().contiguous()
        g, gradient = rows.new_empty(len(rows)), torch.empty_like(rows)
        self._run(rows, g, gradient.data_ptr())
        return g, gradient

    def logits(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """Return g alone, in half the time."""
        rows = x.detach().contiguous()
        g = rows.new_empty(len(rows))
        self._run(rows, g, None)
        return g

    def differentiable(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """Return g, whose gradient torch knows."""
        if not (torch.is_grad_enabled() and x.requires_grad):
            return self.logits(x)
        return _Known.apply(x, self)  # type: ignore[no-untyped-call]

    def _run(self, rows: Float[Tensor, "B D"], g: Float[Tensor, " B"], gradient: int | None) -> None:
        given = (ctypes.byref(self.logit), *(ctypes.c_void_p(at) for at in (rows.data_ptr(), g.data_ptr(), gradient)))
        from_one_queue(len(rows), lambda queue: self.library.slopes_of_rows(*given, queue))

    def _agrees(self, model: AutoEncoder) -> bool:
        """Try a few rows against torch: a compiler may be wrong, or the processor another than it believes."""
        D = self.logit.sizes[1]
        x = torch.rand(17, D, generator=torch.Generator().manual_seed(0))
        return agree(zip(self(x), logit_with_gradient(model, x), strict=True), _AGREES)


class _Known(torch.autograd.Function):
    """The logits of rows; their gradient comes with them."""

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "B D"], slopes: CompiledSlopes) -> Float[Tensor, " B"]:
        g, gradient = slopes(x)
        ctx.save_for_backward(gradient)
        return g

    @staticmethod
    def backward(ctx: Any, *pulls: Float[Tensor, " B"]) -> tuple[Float[Tensor, "B D"], None]:
        (gradient,) = ctx.saved_tensors
        return pulls[0].unsqueeze(1) * gradient, None


@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    """The logit of a target class and its gradient; to be called in tiles, on which torch's last bits depend."""

    model: AutoEncoder
    """In single precision."""
    compiled: CompiledSlopes | None

    @staticmethod
    def of(model: AutoEncoder) -> "Slope":
        """Compile what can be compiled; once for a model."""
        return _slope(model)

    def __call__(
        self, x: Float[Tensor, "B D"], sign: Float[Tensor, " B"]
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
        """s g(x) and its gradient; positive on the target's side."""
        g, gradient = self.unsigned(x)
        return sign * g, gradient.mul_(sign.unsqueeze(1))

    def unsigned(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
        """g(x) and its gradient."""
        return logit_with_gradient(self.model, x) if self.compiled is None else self.compiled(x)

    def logits(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """g(x) alone, in half the time."""
        return self._plain(x) if self.compiled is None else self.compiled.logits(x)

    def differentiable(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """g(x), whose gradient torch knows."""
        return self._plain(x) if self.compiled is None else self.compiled.differentiable(x)

    def _plain(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        return logit(self.model, encode(self.model, x))


@lru_cache(maxsize=16)
def _slope(model: AutoEncoder) -> Slope:
    single = moved(model, device="cpu", dtype=torch.float32)
    return Slope(single, CompiledSlopes.of(single))
