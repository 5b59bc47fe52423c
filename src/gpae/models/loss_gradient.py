"""The gradient of the GPAE's loss on a batch, written out.

With f = phi(x), l = W_e'f, C = cos(Zl + c), a = sqrt(2/S), e = 2 w_r (a W_d'C - x) / b for a batch of b rows, and
r = w_c c_i (sigmoid(g) - y) / b:

    dW_d = a C'e + W_d / n        dl = -a Z'(sin(Zl + c) * W_d e) + theta r        dW_e = f'dl + W_e / n
    dtheta = l'r                  dtheta_0 = sum r

Automatic differentiation takes twice as long, for two reasons: it allocates every table of a batch anew, and it
multiplies tall tables with narrow ones the slow way round (with the narrow one on the left it is six times as fast).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.models.training import LossWeights, Rows
from gpae.numerics.autoencoder import AutoEncoder

__all__ = ["Gradient", "Scratch", "gradient"]


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """By each of the trained weights."""

    encoder_weights: Float[Tensor, "S d"]
    decoder_weights: Float[Tensor, "S D"]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Tables that every batch is computed in."""

    features: Float[Tensor, "b S"]
    phase: Float[Tensor, "b S"]
    cosine: Float[Tensor, "b S"]

    @classmethod
    def of(cls, batch_size: int, model: AutoEncoder) -> "Scratch":
        """For batches of one size."""
        like, S = model.encoder_weights, len(model.encoder.phases)
        return cls(*(like.new_empty(batch_size, S) for _ in range(3)))


def gradient(
    model: AutoEncoder, phi: Float[Tensor, "b S"], batch: Rows, weights: LossWeights, n: int, scratch: Scratch
) -> Gradient:
    """The gradient of the loss on a batch of the n rows; phi are the encoder's features of the batch."""
    b, a = len(phi), model.decoder.amplitude
    W_d, frequencies = model.decoder_weights, model.decoder.frequencies.T
    latent = model.encoder_weights.T @ phi.T  # d x b
    phase = torch.addmm(model.decoder.phases, latent.T, frequencies, out=scratch.phase)
    cosine = torch.cos(phase, out=scratch.cosine)
    error = torch.addmm(batch.x, cosine, W_d, beta=-1, alpha=a).mul_(2 * weights.reconstruction / b)
    by_decoder = torch.addmm(W_d.T, error.T, cosine, beta=1 / n, alpha=a).T
    phase.sin_().mul_(torch.mm(error, W_d.T, out=cosine))
    g = model.theta @ latent + model.theta0
    residual = (torch.sigmoid(g) - batch.y) * batch.weight * (weights.classification / b)
    by_latent = torch.addr(frequencies @ phase.T, model.theta, residual, beta=-a)  # d x b
    by_encoder = torch.addmm(model.encoder_weights.T, by_latent, phi, beta=1 / n).T
    return Gradient(by_encoder, by_decoder, latent @ residual, residual.sum())
