"""Sums of cosines, W'phi(x), for many rows: compiled (cosines.c) where that can be, by torch in tiles elsewhere.

Latents, log densities and replicas' logits are such sums. A row's value does not depend on the rows around it.
"""

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.packing import MACROS, REALS, Precision, agree, in_sheaves, pointers
from gpae.kernels.threads import from_one_queue
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt, log_envelope
from gpae.numerics.fourier import FourierMap, features
from gpae.numerics.tiles import in_tiles

__all__ = ["CosineSums", "cosine_sums", "latents", "log_densities", "logits", "shares_above"]

_FEATURES, _OUTPUTS = 64, 8
"""What features and sums are padded to."""
_SMALL = 2048
"""Rows of a few numbers each that torch takes at once."""
_REMEMBERED = 1 << 15
"""Rows at most that are kept for the next question about them."""
_AGREES: dict[Precision, float] = {"single": 1e-3, "double": 1e-12}
"""How far a sum may be from torch's, relative to the largest, for the library to be believed."""


class _Sums(ctypes.Structure):
    _fields_ = (("sizes", ctypes.c_int64 * 3), ("tables", ctypes.c_void_p * 4))


@dataclass(frozen=True, slots=True, eq=False)
class CosineSums:
    """A Fourier map and weights as cosines.c wants them, in one precision; what goes in and comes out is double."""

    library: ctypes.CDLL
    tables: tuple[NDArray[Any], ...]
    sums: _Sums
    outputs: int

    @classmethod
    def of(
        cls, fmap: FourierMap, weights: Float[Tensor, "..."], precision: Precision = "double"
    ) -> "CosineSums | None":
        """Pack them; None where there is no library for them, or one that does not agree with torch."""
        compiled = library("cosines.c", **MACROS[precision])
        if compiled is None or fmap.phases.is_cuda or fmap.phases.dtype != torch.float64:
            return None
        linear, offset = _parts(fmap, weights)
        S, D = fmap.frequencies.shape
        more, wide = -S % _FEATURES, linear.shape[1] + -linear.shape[1] % _OUTPUTS
        w = np.zeros((S + more, wide))
        w[:S, : linear.shape[1]] = fmap.amplitude * linear.numpy()
        parts = (
            in_sheaves(np.pad(fmap.frequencies.numpy(), ((0, more), (0, 0)))),
            np.pad(fmap.phases.numpy(), (0, more)),
            w.reshape(S + more, -1, _OUTPUTS).transpose(1, 0, 2),
            np.pad(offset.numpy(), (0, wide - len(offset))),
        )
        tables: tuple[NDArray[Any], ...] = tuple(np.ascontiguousarray(part, dtype=REALS[precision]) for part in parts)
        packed = cls(compiled, tables, _Sums((S + more, D, wide), pointers(tables)), linear.shape[1])
        return packed if packed._agrees(fmap, weights, _AGREES[precision]) else None

    def __call__(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B R"]:
        """The sums of each row."""
        rows = self._readable(x)
        out = np.empty((len(rows), self.sums.sizes[2]))
        given = ctypes.byref(self.sums), ctypes.c_void_p(rows.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        from_one_queue(len(rows), lambda queue: self.library.sum_rows(*given, queue))
        return torch.from_numpy(out[:, : self.outputs])

    def above(self, x: Float[Tensor, "B D"], own: Float[Tensor, " B"]) -> Int[Tensor, " B"]:
        """How many sums of each row are above 0, a number of the row's own added."""
        rows, added = self._readable(x), np.ascontiguousarray(own.numpy(), dtype=np.float64)
        out = np.empty(len(rows), np.int64)
        x_at, own_at, out_at = (ctypes.c_void_p(part.ctypes.data) for part in (rows, added, out))
        given = ctypes.byref(self.sums), x_at, own_at, ctypes.c_int64(self.outputs), out_at
        from_one_queue(len(rows), lambda queue: self.library.count_above(*given, queue))
        return torch.from_numpy(out)

    def _readable(self, x: Float[Tensor, "B D"]) -> NDArray[np.float64]:
        """Rows side by side in memory; C would read on beyond the end of narrower ones."""
        columns = self.sums.sizes[1]
        if x.shape[1:] != (columns,):
            raise ValueError(f"rows of {columns} columns are needed, these have the shape {tuple(x.shape)}")
        return np.ascontiguousarray(x.numpy(), dtype=np.float64)

    def _agrees(self, fmap: FourierMap, weights: Tensor, tolerance: float) -> bool:
        """Try a few rows against torch: a compiler may be wrong, or the processor another than it believes."""
        D = fmap.frequencies.shape[1]
        x = torch.rand(9, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        return agree([(self(x), _plain(fmap, weights, x))], tolerance)


def cosine_sums(
    fmap: FourierMap, weights: Float[Tensor, "..."], x: Float[Tensor, "B D"], precision: Precision = "double"
) -> Float[Tensor, "B R"]:
    """W'phi(x).

    ``weights``: S x R, or S for one sum; a last row more is that of a feature which is 1 for everybody. Single
    precision is for sums of which a few digits are read, and half the work; where nothing is compiled it is double.
    """
    compiled = _compiled(fmap, weights, precision)
    if compiled is not None:
        return compiled(x)
    (sums,) = in_tiles(lambda rows: (_plain(fmap, weights, rows),), (x,))
    return sums


def shares_above(
    fmap: FourierMap,
    weights: Float[Tensor, "..."],
    x: Float[Tensor, "B D"],
    own: Float[Tensor, " B"],
    precision: Precision = "double",
) -> Float[Tensor, " B"]:
    """Of the sums W'phi(x) the share that is above 0, a number of the row's own added; without a table of the sums."""
    compiled = _compiled(fmap, weights, precision)
    if compiled is not None:
        return compiled.above(x, own).double() / compiled.outputs
    return (own.unsqueeze(1) + cosine_sums(fmap, weights, x, precision) > 0).double().mean(1)


def latents(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
    """lambda = W_e'phi_e(x)."""
    return _encoded(model, x)[:, :-1].clone()


def logits(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
    """g = theta'lambda + theta_0."""
    return _encoded(model, x)[:, -1].clone()


def log_densities(density: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """Log p at latents."""
    (envelope,) = in_tiles(lambda z: (log_envelope(density, z),), (latent,), _SMALL)
    return cosine_sums(density.fmap, density.weights, latent)[:, 0] + envelope - density.log_normaliser


def _parts(fmap: FourierMap, weights: Tensor) -> tuple[Float[Tensor, "S R"], Float[Tensor, " R"]]:
    """The weights of the features, and of the one that is always 1."""
    table, S = weights.reshape(len(weights), -1), len(fmap.phases)
    return table[:S], table[S:].sum(0)


def _plain(fmap: FourierMap, weights: Tensor, x: Float[Tensor, "B D"]) -> Float[Tensor, "B R"]:
    linear, offset = _parts(fmap, weights)
    return features(fmap, x) @ linear + offset


@dataclass(slots=True, eq=False)
class _Recent:
    """The rows that were asked about last, and what they came to."""

    last: tuple[Tensor, Tensor] | None = None


def _encoded(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d+1"]:
    """Latents and, in a last column, the logit: they cost as much as either alone.

    Who asks for a plan is asked about several times (who is refused, where to begin, how it was before), and so is the
    plan: the last rows are remembered, unless they are very many.
    """
    if len(x) > _REMEMBERED:
        return cosine_sums(model.encoder, _folded(model), x)
    recent = _recent(model)
    known = recent.last
    if known is None or not torch.equal(known[0], x):
        known = x.clone(), cosine_sums(model.encoder, _folded(model), x)
        recent.last = known  # at once: another thread sees the old pair or the new one
    return known[1]


@lru_cache(maxsize=8)
def _recent(model: AutoEncoder) -> _Recent:
    return _Recent()


@lru_cache(maxsize=32)
def _folded(model: AutoEncoder) -> Float[Tensor, "S+1 d+1"]:
    both = torch.cat([model.encoder_weights, model.logit_weights.unsqueeze(1)], dim=1)
    offset = torch.cat([torch.zeros_like(model.theta), model.theta0.reshape(1)])
    return torch.cat([both, offset.unsqueeze(0)])


@lru_cache(maxsize=32)
def _compiled(fmap: FourierMap, weights: Tensor, precision: Precision) -> CosineSums | None:
    """Packed once, for a row alone takes less time than that."""
    return CosineSums.of(fmap, weights, precision)
