"""The GPAE as data: two Fourier maps, two trained linear maps, one linear classifier, and the functions of them.

    encode   lambda = W_e' phi_e(x)        decode   x^ = W_d' phi_d(lambda)        logit   g = theta' lambda + theta_0

Rows are processed in tiles of a fixed size by one thread each (:mod:`gpae.numerics.tiles`), so that the value of a
row does not depend on the rows around it; the functions here are what runs inside a tile.
"""

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from gpae.numerics.aligned import product
from gpae.numerics.encoder import Encoder
from gpae.numerics.fourier import FourierMap, features, phase, slopes

__all__ = ["AutoEncoder", "decode", "encode", "encode_with_jacobian", "logit", "logit_with_gradient"]


@dataclass(frozen=True, slots=True, eq=False)
class AutoEncoder:
    """Encoder, decoder and classifier of a fitted GPAE; an :class:`~gpae.numerics.encoder.Encoder`."""

    encoder: FourierMap
    encoder_weights: Float[Tensor, "S d"]
    decoder: FourierMap
    decoder_weights: Float[Tensor, "S D"]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """:func:`encode`."""
        return encode(self, x)

    def decode(self, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """:func:`decode`."""
        return decode(self, latent)

    def encode_with_jacobian(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d D"]]:
        """:func:`encode_with_jacobian`."""
        return encode_with_jacobian(self, x)

    def bend(self, x: Float[Tensor, "B D"], pull: Float[Tensor, "B d"]) -> Float[Tensor, "B D D"]:
        """sum_k pull_k (Hessian of lambda_k): the cosines' second derivatives are the cosines."""
        Z = self.encoder.frequencies
        weighted = -features(self.encoder, x) * product(pull, self.encoder_weights.T)
        D = Z.shape[1]
        return product(weighted, (Z.unsqueeze(2) * Z.unsqueeze(1)).flatten(1)).unflatten(1, (D, D))

    @property
    def logit_weights(self) -> Float[Tensor, " S"]:
        """v = W_e theta, each feature's weight in the logit: both linear maps in one.

        Latent by latent, so that its last bits do not depend on where in memory the weights lie.
        """
        return (self.encoder_weights.contiguous() * self.theta).sum(1)

    def stretched(self, units: Float[Tensor, " D"]) -> "AutoEncoder":
        """Of rows whose columns were multiplied by ``units``."""
        return replace(self, encoder=FourierMap(self.encoder.frequencies / units, self.encoder.phases))

    def widened(self, extra: int) -> "AutoEncoder":
        """With ``extra`` input columns of frequency zero."""
        return replace(self, encoder=FourierMap(pad(self.encoder.frequencies, (0, extra)), self.encoder.phases))


def encode(model: AutoEncoder, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
    """lambda = W_e' phi_e(x)."""
    return product(features(model.encoder, x), model.encoder_weights)


def decode(model: AutoEncoder, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
    """x^ = W_d' phi_d(lambda)."""
    return product(features(model.decoder, latent), model.decoder_weights)


def logit(model: Encoder, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """g = theta' lambda + theta_0 (E6: with the bias)."""
    return latent @ model.theta + model.theta0


def logit_with_gradient(
    model: AutoEncoder, x: Float[Tensor, "B D"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, "B D"]]:
    """Return g and dg / dx; both linear maps fold into one vector v = W_e theta, so d does not enter the cost."""
    v = model.encoder.amplitude * model.logit_weights
    argument = phase(model.encoder, x)
    gradient = product(argument.sin() * -v, model.encoder.frequencies)
    return argument.cos_() @ v + model.theta0, gradient


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
