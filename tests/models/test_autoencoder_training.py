"""What the auto-encoders share in training: how rows become batches, and the warning of a collapse."""

import warnings

import pytest
import torch

from gpae.models.autoencoder_training import CollapsedLatentWarning, in_batches, warn_if_collapsed


def table(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbered rows, and a table without columns beside them."""
    return torch.arange(n, dtype=torch.float32).unsqueeze(1), torch.zeros(n, 0)


@pytest.mark.parametrize("n", [5, 60, 270, 511, 512, 700, 9000, 40_000])
def test_an_epoch_has_enough_batches_of_enough_rows_and_every_row_as_often_as_another(n: int) -> None:
    (rows, beside), batch_size = in_batches(table(n), None, 512)
    assert len(rows) == len(beside)
    assert 16 <= batch_size <= 512
    assert len(rows) / batch_size >= 31.9
    times = torch.bincount(rows.flatten().long(), minlength=n)
    assert times.max() - times.min() <= 1  # one row at most is left out of an epoch
    assert (times.max() == 1) == (n >= 512)


def test_a_large_table_has_the_largest_batches() -> None:
    assert in_batches(table(100_000), None, 256)[1] == 256


def test_a_size_that_is_given_is_kept_and_no_row_is_repeated() -> None:
    (rows, _), batch_size = in_batches(table(100), 32, 512)
    assert (len(rows), batch_size) == (100, 32)


def test_no_batch_has_a_single_row() -> None:
    (rows, _), batch_size = in_batches(table(97), 32, 512)
    assert (len(rows), batch_size) == (96, 32)
    assert len(in_batches(table(1), 32, 512)[0][0]) == 1


def test_only_latents_without_variance_are_warned_of() -> None:
    with pytest.warns(CollapsedLatentWarning, match=r"rows is 5\.0e-03; try again"):
        warn_if_collapsed(0.005, "try again")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_collapsed(0.02, "try again")
