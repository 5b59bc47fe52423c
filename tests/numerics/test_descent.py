"""Descent of many rows: which point is kept, and when a row stops."""

from functools import partial

import torch
from torch import Tensor

from gpae.numerics.descent import Evaluation, descend

START = torch.tensor([[4.0], [-3.0], [0.5]])
SGD = partial(torch.optim.SGD, lr=0.1)


def parabola(state: Tensor) -> Evaluation:
    """Least at 0; valid within 2."""
    return Evaluation(state, state.square().sum(1), 2 * state, (state.abs() <= 2).squeeze(1))


def test_the_valid_point_of_least_loss_is_kept() -> None:
    walked = descend(START, parabola, SGD, 100)
    assert walked.found.all()
    torch.testing.assert_close(walked.row, torch.zeros(3, 1), atol=1e-6, rtol=0.0)


def test_with_a_rank_the_valid_point_of_least_rank_is_kept() -> None:
    def furthest_is_best(state: Tensor) -> Evaluation:
        here = parabola(state)
        return Evaluation(here.row, here.loss, here.gradient, here.valid, -state.abs().sum(1))

    walked = descend(START, furthest_is_best, SGD, 100)
    first_inside = torch.stack([row * 0.8 ** next(k for k in range(9) if abs(row) * 0.8**k <= 2) for row in START])
    torch.testing.assert_close(walked.row, first_inside)


def test_a_settled_row_stays_where_it_is_and_nothing_behind_it_counts() -> None:
    seen: list[Tensor] = []

    def after_three_points(loss: Tensor) -> Tensor:
        seen.append(loss)
        return torch.tensor([len(seen) >= 3, False, False])

    walked = descend(START, parabola, SGD, 50, settled=after_three_points)
    torch.testing.assert_close(walked.state[0], START[0] * 0.8**2)
    assert walked.found.tolist() == [False, True, True]  # 4, 3.2, 2.56 are all beyond 2
    torch.testing.assert_close(seen[0], START.square().sum(1))


def test_a_row_walks_the_same_way_alone_and_stops_when_its_loss_falls_no_more() -> None:
    adam = partial(torch.optim.Adam, lr=0.3)
    together = descend(START, parabola, adam, 200, patience=5)
    for i in range(3):
        alone = descend(START[i : i + 1], parabola, adam, 200, patience=5)
        assert torch.equal(alone.row[0], together.row[i])
        assert torch.equal(alone.state[0], together.state[i])
