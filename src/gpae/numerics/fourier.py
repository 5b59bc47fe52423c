"""Random Fourier features: phi(x) = sqrt(2/S) cos(Zx + c), with phi(x)'phi(x') -> exp(-|x - x'|^2 / 2b^2).

The length-scale b is folded into the frequencies, Z = z / b, so that a map is just two tensors (errata E3-E5).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.aligned import product

__all__ = ["FourierMap", "Scheme", "draw_map", "features", "median_length_scale", "phase", "slopes"]

Scheme = Literal["random", "sobol"]


@dataclass(frozen=True, slots=True, eq=False)
class FourierMap:
    """A fixed draw of frequencies (already divided by the length-scale) and phases in [0, 2 pi)."""

    frequencies: Float[Tensor, "S D"]
    phases: Float[Tensor, " S"]

    @property
    def amplitude(self) -> float:
        """sqrt(2/S), the factor in front of every cosine."""
        return math.sqrt(2.0 / self.phases.shape[0])


def draw_map(
    n_features: int,
    n_inputs: int,
    length_scale: float | Float[Tensor, " D"],
    generator: torch.Generator,
    scheme: Scheme = "random",
) -> FourierMap:
    """Draw a map in float64 on the CPU, the same on every device.

    ``random``: plain draws. ``sobol``: a scrambled Sobol sequence through the inverse normal CDF, the D-dimensional
    form of the paper's "grid using inverse CDF" (E5).
    """
    if scheme == "sobol":
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator).item())
        engine = torch.quasirandom.SobolEngine(n_inputs + 1, scramble=True, seed=seed)
        uniform = engine.draw(n_features, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
        z = torch.special.ndtri(uniform[:, :n_inputs])
        phases = 2 * math.pi * uniform[:, n_inputs]
    else:
        z = torch.randn(n_features, n_inputs, generator=generator, dtype=torch.float64)
        phases = 2 * math.pi * torch.rand(n_features, generator=generator, dtype=torch.float64)
    return FourierMap(z / length_scale, phases)


def phase(fmap: FourierMap, x: Float[Tensor, "B D"]) -> Float[Tensor, "B S"]:
    """Zx + c."""
    return product(x, fmap.frequencies.T) + fmap.phases


def features(fmap: FourierMap, x: Float[Tensor, "B D"]) -> Float[Tensor, "B S"]:
    """phi(x)."""
    return phase(fmap, x).cos_().mul_(fmap.amplitude)


def slopes(fmap: FourierMap, x: Float[Tensor, "B D"]) -> Float[Tensor, "B S"]:
    """phi'(Zx + c): the derivative of each feature with respect to its own argument."""
    return phase(fmap, x).sin_().mul_(-fmap.amplitude)


def median_length_scale(x: Float[Tensor, "B D"], generator: torch.Generator, sample: int = 1000) -> float:
    """Median distance between two rows over sqrt(2): the usual starting length-scale (E4)."""
    rows = x[torch.randperm(x.shape[0], generator=generator)[:sample].to(x.device)]
    distances = torch.pdist(rows)
    distances = distances[distances > 0]
    return float(distances.median()) / math.sqrt(2.0) if distances.numel() else 1.0
