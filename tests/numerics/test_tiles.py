import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.numerics.tiles import TILE, in_tiles


def noisy_products(x: torch.Tensor) -> tuple[torch.Tensor]:
    weights = torch.linspace(-1, 1, 40 * 333, dtype=torch.float32).reshape(40, 333)
    return ((x @ weights).cos() @ weights.T,)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3 * TILE), st.randoms(use_true_random=False))
def test_a_rows_bits_do_not_depend_on_batch_or_position(n: int, random: object) -> None:
    x = torch.rand(n, 40, generator=torch.Generator().manual_seed(n))
    (whole,) = in_tiles(noisy_products, (x,))
    order = list(range(n))
    random.shuffle(order)  # type: ignore[attr-defined]
    (shuffled,) = in_tiles(noisy_products, (x[order],))
    assert torch.equal(shuffled, whole[order])
    (alone,) = in_tiles(noisy_products, (x[-1:],))
    assert torch.equal(alone[0], whole[-1])


def test_the_thread_setting_is_left_as_it_was() -> None:
    before = torch.get_num_threads()
    in_tiles(noisy_products, (torch.rand(10, 40),))
    assert torch.get_num_threads() == before


def test_no_rows_give_no_rows() -> None:
    (out,) = in_tiles(noisy_products, (torch.rand(0, 40),))
    assert out.shape == (0, 40)
