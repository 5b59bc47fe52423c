"""The GPAE as data: two Fourier maps, two trained linear maps, one linear classifier, and the functions of them.

    encode   lambda = W_e' phi_e(x)        decode   x^ = W_d' phi_d(lambda)        logit   g = theta' lambda + theta_0

Rows are processed in tiles of a fixed size by one thread each (:mod:`gpae.numerics.tiles`), so that the value of a
row does not depend on the rows around it; the functions here are what runs inside a tile.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from gpae.numerics.aligned import product
from gpae.numerics.fourier import FourierMap, features, slopes

__all__ = ["AutoEncoder", "decode", "encode", "encode_with_jacobian", "logit"]


@dataclass(frozen=True, slots=True, eq=False)
class AutoEncoder:
    """Encoder, decoder and classifier of a fitted GPAE."""

    encoder: FourierMap
    encoder_weights: Float[Tensor, "S d"]
    decoder: FourierMap
    decoder_weights: Float[Tensor, "S D"]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]


def encode(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
    """lambda = W_e' phi_e(x)."""
    return product(features(model.encoder, x), model.encoder_weights)


def decode(model: AutoEncoder, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
    """x^ = W_d' phi_d(lambda)."""
    return product(features(model.decoder, latent), model.decoder_weights)


def logit(model: AutoEncoder, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """g = theta' lambda + theta_0 (E6: with the bias)."""
    return latent @ model.theta + model.theta0


def encode_with_jacobian(
    model: AutoEncoder, x: Float[Tensor, "B D"]
) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d D"]]:
    """Return the latent and J = d lambda / d x, row by row (E10).

    All d gradients of a row come from one product: (B d x S)(S x D).
    """
    slope = slopes(model.encoder, x)
    weighted = slope.unsqueeze(1) * model.encoder_weights.T
    jacobian = product(weighted.flatten(0, 1), model.encoder.frequencies).unflatten(0, weighted.shape[:2])
    return encode(model, x), jacobian
