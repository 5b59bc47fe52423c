"""The posterior mean of a deep Gaussian process with inducing points, as a pure function of tensors.

One layer, for each of its outputs, with z_j the inducing points, l the length-scales and a = K^-1 times the mean of
the inducing values (``L^-T m_u`` in whitened coordinates):

    m(x) = w'x + c + sum_j a_j exp(-1/2 |(x - z_j) / l|^2)

Once a is known a value costs neither a factorisation nor a solve nor a variance. Layers are composed through their
means, and value, Jacobian and second derivatives of the whole follow by the chain rule. The functions are what runs
inside a tile (:mod:`gpae.numerics.tiles`).
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from gpae.numerics.aligned import product, products

__all__ = [
    "InducingAutoEncoder",
    "MeanLayer",
    "layer_bend",
    "layer_mean",
    "layer_mean_with_jacobian",
    "stack_bend",
    "stack_mean",
    "stack_mean_with_jacobian",
]


@dataclass(frozen=True, slots=True, eq=False)
class MeanLayer:
    """Independent outputs, each with inducing points, length-scales and a linear prior mean of its own."""

    points: Float[Tensor, "o m i"]
    precision: Float[Tensor, "o i"]
    """1 / l^2."""
    weights: Float[Tensor, "o m"]
    """a, with the kernel's variance folded in."""
    slope: Float[Tensor, "o i"]
    """w; zero where the prior mean is a constant."""
    offset: Float[Tensor, " o"]
    """c."""


Stack = tuple[MeanLayer, ...]


def layer_mean(layer: MeanLayer, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o"]:
    """m(x)."""
    return _prior_mean(layer, x) + _bumps(layer, x).sum(2)


def layer_mean_with_jacobian(
    layer: MeanLayer, x: Float[Tensor, "B i"]
) -> tuple[Float[Tensor, "B o"], Float[Tensor, "B o i"]]:
    """Return m(x) and dm / dx, row by row."""
    bumps = _bumps(layer, x)
    height, moment = bumps.sum(2), _moment(layer, bumps)
    jacobian = layer.slope + moment - height.unsqueeze(2) * _scaled(layer, x)
    return _prior_mean(layer, x) + height, jacobian


def layer_bend(layer: MeanLayer, x: Float[Tensor, "B i"], pull: Float[Tensor, "B o"]) -> Float[Tensor, "B i i"]:
    """sum_o pull_o (Hessian of m_o).

    A bump bends by (z - x)(z - x)' / l^4 - I / l^2; the outer product is expanded, so that its part in z, which is
    nearly all of the work, is one product with a matrix that does not depend on the row.
    """
    n_inputs = x.shape[1]
    bumps = _bumps(layer, x) * pull.unsqueeze(2)
    height, moment, scaled = bumps.sum(2), _moment(layer, bumps), _scaled(layer, x)
    z = _scaled_points(layer).flatten(0, 1)
    outer = product(bumps.flatten(1), (z.unsqueeze(2) * z.unsqueeze(1)).flatten(1)).unflatten(1, (n_inputs, n_inputs))
    cross = products(scaled.mT, 0.5 * height.unsqueeze(2) * scaled - moment)
    return outer + cross + cross.mT - torch.diag_embed(product(height, layer.precision))


def stack_mean(layers: Stack, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o"]:
    """The layers' means, one after the other."""
    for layer in layers:
        x = layer_mean(layer, x)
    return x


def stack_mean_with_jacobian(
    layers: Stack, x: Float[Tensor, "B i"]
) -> tuple[Float[Tensor, "B o"], Float[Tensor, "B o i"]]:
    """The value of the whole and its Jacobian."""
    mean, jacobian = layer_mean_with_jacobian(layers[0], x)
    for layer in layers[1:]:
        mean, outer = layer_mean_with_jacobian(layer, mean)
        jacobian = products(outer, jacobian)
    return mean, jacobian


def stack_bend(layers: Stack, x: Float[Tensor, "B i"], pull: Float[Tensor, "B o"]) -> Float[Tensor, "B i i"]:
    """sum_o pull_o (Hessian of output o of the whole): the later layers' bend seen through the first, and its own."""
    first, rest = layers[0], layers[1:]
    if not rest:
        return layer_bend(first, x, pull)
    mean, jacobian = layer_mean_with_jacobian(first, x)
    _, outer = stack_mean_with_jacobian(rest, mean)
    own = layer_bend(first, x, products(pull.unsqueeze(1), outer).squeeze(1))
    return products(products(jacobian.mT, stack_bend(rest, mean, pull)), jacobian) + own


@dataclass(frozen=True, slots=True, eq=False)
class InducingAutoEncoder:
    """Encoder, decoder and classifier; an :class:`~gpae.numerics.encoder.Encoder`."""

    encoder: Stack
    decoder: Stack
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """lambda(x) = m_2(m_1(x))."""
        return stack_mean(self.encoder, x)

    def decode(self, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """x^ = m_4(m_3(lambda))."""
        return stack_mean(self.decoder, latent)

    def encode_with_jacobian(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B d D"]]:
        """Lambda and its Jacobian."""
        return stack_mean_with_jacobian(self.encoder, x)

    def bend(self, x: Float[Tensor, "B D"], pull: Float[Tensor, "B d"]) -> Float[Tensor, "B D D"]:
        """sum_k pull_k (Hessian of lambda_k)."""
        return stack_bend(self.encoder, x, pull)

    def widened(self, extra: int) -> "InducingAutoEncoder":
        """With ``extra`` input columns in which the kernels have no extent and the prior mean no slope."""
        first, *rest = self.encoder
        points, precision, slope = (pad(t, (0, extra)) for t in (first.points, first.precision, first.slope))
        wide = replace(first, points=points, precision=precision, slope=slope)
        return replace(self, encoder=(wide, *rest))


def _prior_mean(layer: MeanLayer, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o"]:
    return product(x, layer.slope.T) + layer.offset


def _scaled_points(layer: MeanLayer) -> Float[Tensor, "o m i"]:
    """z / l^2."""
    return layer.points * layer.precision.unsqueeze(1)


def _scaled(layer: MeanLayer, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o i"]:
    """x / l^2."""
    return x.unsqueeze(1) * layer.precision


def _bumps(layer: MeanLayer, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o m"]:
    """a_j exp(-1/2 |(x - z_j) / l|^2), the square expanded so that all outputs share one product."""
    scaled = _scaled_points(layer)
    inner = product(x, scaled.flatten(0, 1).T).unflatten(1, scaled.shape[:2])
    squares = product(x.square(), layer.precision.T).unsqueeze(2) + (scaled * layer.points).sum(2)
    return (inner - 0.5 * squares).exp_() * layer.weights


def _moment(layer: MeanLayer, bumps: Float[Tensor, "B o m"]) -> Float[Tensor, "B o i"]:
    """sum_j (bump j) z_j / l^2."""
    return products(bumps.transpose(0, 1), _scaled_points(layer)).transpose(0, 1)
