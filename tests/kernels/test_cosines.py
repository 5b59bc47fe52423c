"""Compiled sums of cosines: those of torch, and the same for a row in any company."""

import numpy as np
import pytest
import torch

from gpae.kernels import cosines
from gpae.kernels.compiled import why_not
from gpae.kernels.cosines import CosineSums, cosine_sums, latents, log_densities, logits, shares_above
from gpae.kernels.packing import Precision
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.autoencoder import encode, logit
from gpae.numerics.density import log_density
from gpae.numerics.fourier import FourierMap, draw_map, features


def drawn(n_features: int, n_inputs: int, n_sums: int, seed: int = 0) -> tuple[FourierMap, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    fmap = draw_map(n_features, n_inputs, 0.5, generator)
    return fmap, torch.randn(n_features, n_sums, generator=generator, dtype=torch.float64)


def rows(n: int, n_inputs: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(n, n_inputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def compiled() -> None:
    if CosineSums.of(*drawn(8, 2, 1)) is None:
        pytest.skip(f"nothing is compiled here: {why_not('cosines.c')}")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("n_features", "n_inputs", "n_sums"), [(1, 1, 1), (64, 5, 8), (100, 3, 9), (1000, 48, 4)])
def test_the_sums_are_those_of_torch(n_features: int, n_inputs: int, n_sums: int) -> None:
    fmap, weights = drawn(n_features, n_inputs, n_sums)
    x = rows(77, n_inputs)
    packed = CosineSums.of(fmap, weights)
    assert packed is not None
    torch.testing.assert_close(packed(x), features(fmap, x) @ weights, rtol=1e-12, atol=1e-12)
    rough = CosineSums.of(fmap, weights, "single")
    assert rough is not None
    torch.testing.assert_close(rough(x), packed(x), rtol=1e-5, atol=1e-5)
    assert not torch.equal(rough(x), packed(x))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("width", [0, 2, 4])
def test_rows_of_another_width_are_refused_and_never_read(width: int) -> None:
    fmap, weights = drawn(100, 3, 9)
    packed = CosineSums.of(fmap, weights)
    assert packed is not None
    with pytest.raises(ValueError, match="rows of 3 columns"):
        packed(rows(5, width))
    with pytest.raises(ValueError, match="rows of 3 columns"):
        packed.above(rows(5, width), torch.zeros(5, dtype=torch.float64))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_row_alone_has_the_bits_of_the_batch(precision: Precision) -> None:
    fmap, weights = drawn(300, 7, 3)
    x = rows(1100, 7)
    together = cosine_sums(fmap, weights, x, precision)
    for at in (0, 7, 8, 511, 512, 1099):
        assert (cosine_sums(fmap, weights, x[at : at + 1], precision) == together[at]).all()


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_vector_of_weights_is_one_sum_and_a_last_weight_more_is_added(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPAE_KERNELS", switch)
    fmap, weights = drawn(50, 4, 2)
    x = rows(9, 4)
    one = cosine_sums(fmap, weights[:, 0].contiguous(), x)
    assert one.shape == (9, 1)
    torch.testing.assert_close(one[:, 0], features(fmap, x) @ weights[:, 0])
    more = torch.cat([weights, torch.tensor([[2.0, -3.0]], dtype=torch.float64)])
    moved = cosine_sums(fmap, more, x) - cosine_sums(fmap, weights, x)
    torch.testing.assert_close(moved, torch.tensor([[2.0, -3.0]], dtype=torch.float64).expand(9, 2))


@pytest.fixture(scope="module")
def model() -> GPAEClassifier:
    X = np.random.default_rng(0).random((300, 3))
    settings = {"max_epochs": 2, "density_features": 30, "random_state": 0}
    return GPAEClassifier(2, 60, **settings).fit(X, (X.sum(1) > 1.5).astype(int))


def test_latents_and_log_densities_are_those_of_the_model(model: GPAEClassifier) -> None:
    x = torch.as_tensor(np.random.default_rng(0).random((300, 3)))
    torch.testing.assert_close(latents(model.model_, x), model.model_.encode(x))
    z = model.model_.encode(x)
    torch.testing.assert_close(log_densities(model.density_, z), log_density(model.density_, z))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("switch", ["on", "off"])
def test_shares_are_those_of_the_sums_to_the_last_row(
    switch: str, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPAE_KERNELS", switch)
    fmap, weights = drawn(70, 4, 11)
    x, own = rows(37, 4), torch.linspace(-1.0, 1.0, 37, dtype=torch.float64)
    sums = cosine_sums(fmap, weights, x, precision)
    own[5] = -sums[5, 3]  # at 0 is not above it
    shares = shares_above(fmap, weights, x, own, precision)
    torch.testing.assert_close(shares, (own.unsqueeze(1) + sums > 0).double().mean(1), rtol=0, atol=1e-15)
    assert 0.0 < shares.min() < shares.max() < 1.0


def test_no_rows_have_no_sums() -> None:
    assert cosine_sums(*drawn(10, 2, 3), rows(0, 2)).shape == (0, 3)


def test_rows_that_are_asked_about_again_cost_nothing_and_others_are_not_mistaken_for_them(
    model: GPAEClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = model.model_
    looked_at: list[int] = []

    def counted(fmap: FourierMap, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        looked_at.append(len(x))
        return cosine_sums(fmap, weights, x)

    monkeypatch.setattr(cosines, "cosine_sums", counted)
    x = rows(40, 3)
    first = latents(encoder, x)
    said = logits(encoder, x)
    torch.testing.assert_close(said, logit(encoder, encode(encoder, x)))
    expected = first.clone()
    first += 1.0  # whoever asked may do with it as they like
    torch.testing.assert_close(latents(encoder, x), expected, rtol=0, atol=0)
    assert looked_at == [40]
    x[7] += 0.5  # the same table, another row
    assert not torch.equal(latents(encoder, x)[7], expected[7])
    assert looked_at == [40, 40]


def test_very_many_rows_are_not_kept(model: GPAEClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cosines, "_REMEMBERED", 10)
    few, many = rows(10, 3), rows(11, 3)
    latents(model.model_, few)
    latents(model.model_, many)
    kept = cosines._recent(model.model_).last
    assert kept is not None
    assert torch.equal(kept[0], few)
