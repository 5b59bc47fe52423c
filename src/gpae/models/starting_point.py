"""Where training starts: the kernel's length-scale, and weights that the convex parts of the problem already give."""

import math
from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from gpae.models.training import Rows
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.convex import logistic, ridge
from gpae.numerics.fourier import FourierMap, features, median_length_scale
from gpae.progress import report

__all__ = [
    "CONVEX_ROWS",
    "LENGTH_SCALE_FACTORS",
    "PRIOR",
    "choose_length_scale",
    "convex_latents",
    "random_start",
    "start_from_convex_parts",
]

LENGTH_SCALE_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
"""Candidates for the encoder's length-scale, in units of the median distance between two rows over sqrt(2)."""

CONVEX_ROWS = 10_000
"""At most so many rows are used for a start."""
PRIOR = 0.1
"""Prior precision of the convex starting point; W_e's own prior leaves the scale of theta free, which is weaker."""


def choose_length_scale(
    train: Rows, valid: Rows, unit_map: FourierMap, generator: torch.Generator, n_rows: int = 6000
) -> float:
    """Pick the encoder's length-scale by the cross-entropy of the convex classifier on rows it was not fitted to.

    theta'W_e'phi(x) is logistic regression on fixed features, so each candidate costs a few Newton steps. The largest
    one within a standard error of the best wins: what validation rows cannot tell apart, smoothness decides.
    """
    base = median_length_scale(train.x, generator)
    n_rows = min(n_rows, math.ceil(0.7 * len(train.x)))
    order = torch.randperm(len(train.x), generator=generator).to(train.x.device)
    # training rows that the candidates are not fitted to judge them too: a thousand validation rows alone are noisy
    rows, spare = train.rows(order[:n_rows]), train.rows(order[n_rows : 2 * n_rows])
    judges = Rows(*(torch.cat([getattr(valid, f.name), getattr(spare, f.name)]) for f in fields(Rows)))
    losses = []
    for i, factor in enumerate(LENGTH_SCALE_FACTORS):
        fmap = FourierMap(unit_map.frequencies / (factor * base), unit_map.phases)
        v, bias = logistic(features(fmap, rows.x), rows.y, rows.weight, PRIOR / len(rows.x))
        g = features(fmap, judges.x) @ v + bias
        losses.append(torch.nan_to_num(judges.weight * (softplus(g) - judges.y * g), nan=torch.inf))
        report("choosing the length-scale", (i + 1) / len(LENGTH_SCALE_FACTORS))
    table = torch.stack(losses)
    excess = table - table[table.mean(1).argmin()]
    close = excess.mean(1) <= excess.std(1) / math.sqrt(len(judges.x))
    return LENGTH_SCALE_FACTORS[int(close.nonzero().max())] * base


def start_from_convex_parts(
    train: Rows, encoder: FourierMap, decoder: FourierMap, latent_dim: int, generator: torch.Generator
) -> AutoEncoder:
    """A start that is already good: :func:`convex_latents`, and for the decoder the ridge solution given those."""
    rows = train.sample(CONVEX_ROWS, generator)
    phi = features(encoder, rows.x)
    encoder_weights, theta, bias = convex_latents(phi, rows, latent_dim, generator)
    decoder_weights = ridge(features(decoder, phi @ encoder_weights), rows.x, PRIOR)
    return AutoEncoder(encoder, encoder_weights, decoder, decoder_weights, theta, bias)


def random_start(encoder: FourierMap, decoder: FourierMap, n_columns: int, generator: torch.Generator) -> AutoEncoder:
    """Random weights, of the size that torch's linear layers begin with; plain Adam descends from them faster than from
    draws of the prior."""
    S, d = decoder.frequencies.shape

    def draw(*shape: int, inputs: int) -> Tensor:
        uniform = torch.rand(shape, generator=generator, dtype=decoder.phases.dtype).to(decoder.phases.device)
        return (2 * uniform - 1) / math.sqrt(inputs)

    weights = draw(S, d, inputs=S), draw(S, n_columns, inputs=S)
    return AutoEncoder(encoder, weights[0], decoder, weights[1], draw(d, inputs=d), draw(inputs=d))


def convex_latents(
    phi: Float[Tensor, "N S"], rows: Rows, latent_dim: int, generator: torch.Generator
) -> tuple[Float[Tensor, "S d"], Float[Tensor, " d"], Float[Tensor, ""]]:
    """Latents that are linear in features of the rows, with theta and theta_0: the first is the logit of the convex
    classifier, the others are the leading directions of the best linear reconstruction from the features."""
    v, bias = logistic(phi, rows.y, rows.weight, PRIOR / len(rows.x))
    spread = (phi @ v).std().clamp(min=1e-6)
    centred = phi - phi.mean(0)
    linear = ridge(centred, rows.x - rows.x.mean(0), PRIOR)
    directions = torch.linalg.svd(centred @ linear, full_matrices=False).Vh[: latent_dim - 1].T
    others = linear @ directions
    others = others / (centred @ others).square().mean(0).sqrt().clamp(min=1e-6)
    missing = latent_dim - 1 - others.shape[1]
    noise = torch.randn(len(v), missing, generator=generator, dtype=v.dtype).to(v.device)
    theta = v.new_zeros(latent_dim)
    theta[0] = spread
    return torch.cat([(v / spread).unsqueeze(1), others, noise], 1), theta, bias
