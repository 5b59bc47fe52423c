"""The posterior mean of stacked layers, its derivatives, and that both are those of gpytorch's own model."""

from itertools import pairwise

import pytest
import torch

from gpae.models.inducing_autoencoder import InducingGPAEClassifier
from gpae.numerics.aligned import products
from gpae.numerics.differentiated import Differentiated
from gpae.numerics.encoder import Encoder
from gpae.numerics.inducing import InducingAutoEncoder, MeanLayer, layer_mean
from gpae.numerics.tiles import in_tiles

SIZES = [(5, 3), (7, 10, 4), (4, 3, 5, 2)]


def layer(n_in: int, n_out: int, g: torch.Generator, n_points: int = 6) -> MeanLayer:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    precision = 0.2 + torch.rand(n_out, n_in, generator=g, dtype=torch.float64)
    return MeanLayer(draw(n_out, n_points, n_in), precision, draw(n_out, n_points), draw(n_out, n_in), draw(n_out))


def model(sizes: tuple[int, ...]) -> InducingAutoEncoder:
    g = torch.Generator().manual_seed(0)
    encoder = tuple(layer(n_in, n_out, g) for n_in, n_out in pairwise(sizes))
    theta = torch.randn(sizes[-1], generator=g, dtype=torch.float64)
    return InducingAutoEncoder(encoder, (layer(sizes[-1], sizes[0], g),), theta, torch.zeros((), dtype=torch.float64))


def rows(n: int, n_columns: int) -> torch.Tensor:
    return torch.randn(n, n_columns, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_layer_is_its_prior_mean_and_a_bump_at_each_inducing_point() -> None:
    one, x = layer(3, 2, torch.Generator().manual_seed(0)), rows(4, 3)
    for b in range(len(x)):
        for o in range(2):
            value = one.slope[o] @ x[b] + one.offset[o]
            for j in range(one.points.shape[1]):
                distance = ((x[b] - one.points[o, j]).square() * one.precision[o]).sum()
                value = value + one.weights[o, j] * torch.exp(-0.5 * distance)
            torch.testing.assert_close(layer_mean(one, x)[b, o], value)


@pytest.mark.parametrize("sizes", SIZES)
def test_jacobian_and_bend_are_those_of_automatic_differentiation(sizes: tuple[int, ...]) -> None:
    fast, x = model(sizes), rows(6, sizes[0])
    slow = Differentiated(fast.encode, fast.theta, fast.theta0)
    for ours, theirs in zip(fast.encode_with_jacobian(x), slow.encode_with_jacobian(x), strict=True):
        torch.testing.assert_close(ours, theirs)
    pull = rows(6, sizes[-1])
    torch.testing.assert_close(fast.bend(x, pull), slow.bend(x, pull))
    assert isinstance(fast, Encoder)
    assert isinstance(slow, Encoder)


@pytest.mark.parametrize("sizes", SIZES)
def test_further_columns_take_part_in_nothing(sizes: tuple[int, ...]) -> None:
    plain, x, pull = model(sizes), rows(6, sizes[0]), rows(6, sizes[-1])
    wide_x = torch.cat([x, rows(6, 3)], 1)
    for encoder in (plain, Differentiated(plain.encode, plain.theta, plain.theta0)):
        wide = encoder.widened(3)
        latent, jacobian = wide.encode_with_jacobian(wide_x)
        torch.testing.assert_close(latent, plain.encode(x))
        torch.testing.assert_close(jacobian[:, :, :-3], plain.encode_with_jacobian(x)[1])
        bend = wide.bend(wide_x, pull)
        torch.testing.assert_close(bend[:, :-3, :-3], plain.bend(x, pull))
        assert not jacobian[:, :, -3:].any()
        assert not bend[:, -3:].any()


@pytest.mark.parametrize("sizes", SIZES)
def test_a_row_gets_the_same_bits_wherever_it_stands(sizes: tuple[int, ...]) -> None:
    fast, x, pull = model(sizes), rows(150, sizes[0]), rows(150, sizes[-1])

    def everything(x: torch.Tensor, pull: torch.Tensor) -> tuple[torch.Tensor, ...]:
        latent, jacobian = fast.encode_with_jacobian(x)
        return fast.encode(x), latent, jacobian, fast.bend(x, pull)

    whole = in_tiles(everything, (x, pull))
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(2))[:-3]
    for there, here in zip(whole, in_tiles(everything, (x[order], pull[order])), strict=True):
        assert torch.equal(there[order], here)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_products_pair_by_pair_are_right_for_every_size(n: int) -> None:
    left, right = rows(5, 6 * n).unflatten(1, (6, n)), rows(5, 7 * n).unflatten(1, (n, 7))
    torch.testing.assert_close(products(left, right), left @ right)


def fitted(layers_per_side: int) -> tuple[InducingGPAEClassifier, torch.Tensor]:
    x = torch.rand(80, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    model = InducingGPAEClassifier(
        3, n_inducing=12, layers_per_side=layers_per_side, hidden_dim=4, max_steps=6, density_features=10,
        density_draws=200, random_state=0, device="cpu",
    )  # fmt: skip
    return model.fit(x.numpy(), (x[:, 0] > x[:, 1]).numpy()), x


@pytest.mark.parametrize("layers_per_side", [1, 2])
def test_the_means_kept_are_gpytorchs_own_predictions(layers_per_side: int) -> None:
    model, x = fitted(layers_per_side)
    theirs = model.predictive_encoder()
    torch.testing.assert_close(model.model_.encode(x), theirs.encode(x), rtol=0, atol=1e-5)
    # called again, and twice backwards: gpytorch keeps no graph of an earlier call
    for ours, other in zip(model.model_.encode_with_jacobian(x), theirs.encode_with_jacobian(x), strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-5, atol=1e-5)
    pull = rows(len(x), 3)
    torch.testing.assert_close(model.model_.bend(x, pull), theirs.bend(x, pull), rtol=1e-4, atol=1e-4)
