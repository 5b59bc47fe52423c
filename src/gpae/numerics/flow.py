"""Gated inverse autoregressive flow: a few steps, each with a triangular Jacobian, in the direction of sampling.

    (m, r) = MADE(lambda, h),   u = sigmoid(r),   lambda <- u * lambda + (1 - u) * m,   log |det| = sum_j log u_j

Entries j of m and r see lambda_1 ... lambda_{j-1} and all of the context h. The coordinates are reversed behind each
step but the last. One pass gives a sample and its density; the other direction is never needed.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid, relu

from gpae.numerics.aligned import product

__all__ = ["Flow", "draw_flow", "masks", "push"]

_OPEN = 1.5
"""Bias of r at the start: u is 0.82, and the flow near the identity."""


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """The masked networks of K steps, with one hidden layer each; no step, no change."""

    inner: Float[Tensor, "K H i"]
    inner_bias: Float[Tensor, "K H"]
    outer: Float[Tensor, "K o H"]
    outer_bias: Float[Tensor, "K o"]


def draw_flow(d: int, context: int, hidden: int, n_steps: int, generator: torch.Generator) -> Flow:
    """Weights to start from."""

    def uniform(*shape: int) -> Tensor:
        return (2 * torch.rand(n_steps, *shape, generator=generator) - 1) / math.sqrt(shape[-1])

    gates = torch.cat([torch.zeros(n_steps, d), torch.full((n_steps, d), _OPEN)], 1)
    return Flow(uniform(hidden, d + context), torch.zeros(n_steps, hidden), 0.1 * uniform(2 * d, hidden), gates)


@lru_cache
def masks(d: int, context: int, hidden: int) -> tuple[Bool[Tensor, "H i"], Bool[Tensor, "o H"]]:
    """Which inputs a hidden unit sees, and which hidden units an output sees.

    A hidden unit of degree k sees the first k coordinates and the context; output j sees units of degree below j.
    """
    degree = torch.arange(hidden) % d
    seen = torch.cat([torch.arange(1, d + 1), torch.zeros(context, dtype=torch.long)])
    position = torch.arange(1, d + 1).repeat(2)
    return seen <= degree.unsqueeze(1), degree < position.unsqueeze(1)


def push(
    flow: Flow, latent: Float[Tensor, "B d"], context: Float[Tensor, "B c"]
) -> tuple[Float[Tensor, "B d"], Float[Tensor, " B"]]:
    """Return the latents behind the flow, and the logarithms of the Jacobians' determinants."""
    d = latent.shape[1]
    sees, seen = masks(d, context.shape[1], flow.inner.shape[1])
    log_det = torch.zeros_like(latent[:, 0])
    for k in range(len(flow.inner)):
        latent = latent.flip(1) if k else latent
        hidden = product(torch.cat([latent, context], 1), (flow.inner[k] * sees).T) + flow.inner_bias[k]
        out = product(relu(hidden), (flow.outer[k] * seen).T) + flow.outer_bias[k]
        m, r = out[:, :d], out[:, d:]
        u = torch.sigmoid(r)
        latent = u * latent + (1 - u) * m
        log_det = log_det + logsigmoid(r).sum(1)
    return latent, log_det
