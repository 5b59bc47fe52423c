"""How much training a table of n rows gets, whatever its size."""

__all__ = ["batches_and_epochs"]

_LEAST_BATCHES = 8


def batches_and_epochs(n: int, batch_size: int, max_epochs: int, max_updates: int) -> tuple[int, int]:
    """Rows in a batch and number of epochs.

    A small table is split into eight batches at least, so that an epoch is more than one update; a large one gets fewer
    epochs, so that they are no more than ``max_updates``.
    """
    rows = min(batch_size, max(n // _LEAST_BATCHES, 1))
    return rows, min(max_epochs, max(max_updates * rows // n, 1))
