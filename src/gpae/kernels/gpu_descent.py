"""The paper's alternating updates for millions of rows on a GPU (:mod:`gpae.kernels.triton_descent`)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt

__all__ = ["Descent"]

_TILE, _ROWS = 64, 64
_LATENTS = 16
"""What latents are padded to, for the tensor cores."""


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """A surface packed for the kernel: the maps in half precision, everything padded."""

    columns: int
    tables: dict[str, Tensor]

    @classmethod
    def of(cls, model: AutoEncoder, density: Tilt, device: str = "cuda") -> "Descent":
        """Pack a surface for a device."""
        S, D = model.encoder.frequencies.shape
        T = len(density.weights)
        features, more = S + -S % _TILE, T + -T % _TILE
        width = max(_LATENTS, 1 << (D - 1).bit_length())
        weights = model.encoder.amplitude * model.encoder_weights
        density_weights = density.fmap.amplitude * density.weights
        tables = {
            "frequencies": _padded(model.encoder.frequencies, features, width).half(),
            "phases": _padded(model.encoder.phases, features),
            "weights": _padded(weights, features, _LATENTS).half(),
            "theta": _padded(model.theta, _LATENTS),
            "theta0": model.theta0.reshape(1).float(),
            "density_frequencies": _padded(density.fmap.frequencies, more, _LATENTS).half(),
            "density_phases": _padded(density.fmap.phases, more),
            "density_weights": _padded(density_weights, more),
            "mean": _padded(density.mean, _LATENTS),
            "precision": _padded(density.precision, _LATENTS, _LATENTS),
        }
        return cls(D, {name: table.to(device) for name, table in tables.items()})

    def descend(
        self, problem: tuple[Tensor, ...], *, iterations: int, step_delta: float, step_eta: float
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, " B"]]:
        """So many updates from the rows themselves; where they end, and their multipliers.

        ``problem``: x, lower, upper, beta, sign and margin on the device, in single precision.
        """
        from gpae.kernels.triton_descent import descend

        x, lower, upper, beta, sign, margin = (part.contiguous() for part in problem)
        n, t = len(x), self.tables
        u, numbers = torch.empty_like(x), torch.stack([beta, sign, margin, torch.zeros_like(beta)])
        descend[(-(-n // _ROWS),)](
            x, lower, upper, u, numbers, t["frequencies"], t["phases"], t["weights"], t["theta"], t["theta0"], n,
            t["density_frequencies"], t["density_phases"], t["density_weights"], t["mean"], t["precision"],
            step_delta, step_eta, iterations,
            D=self.columns, WIDTH=t["frequencies"].shape[1], S=len(t["phases"]), T=len(t["density_phases"]),
            ROWS=_ROWS, TILE=_TILE, num_warps=4, num_stages=3,
        )  # fmt: skip
        return u, numbers[3]


def _padded(table: Tensor, *shape: int) -> Tensor:
    """In single precision with zeros up to a shape."""
    out = torch.zeros(*shape)
    out[tuple(slice(0, length) for length in table.shape)] = table.float()
    return out
