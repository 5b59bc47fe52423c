"""Rows of a decoder: judged rounded, pulled back as if they were not."""

import numpy as np
import torch
from torch import Tensor

from gpae.search.decoded import Judgement, judged
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People
from gpae.table.layout import Layout
from gpae.table.schema import Continuous, Integer, Schema

A = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
STEPS = Rounding.of(
    Layout.fit(
        Schema(
            features=(
                Integer(name="a", minimum=0, maximum=4),
                Continuous(name="b", minimum=0, maximum=1),
                Continuous(name="c", minimum=0, maximum=1),
            ),
            label="y",
            favourable=1,
        ),
        [np.array([0.0, 4.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0])],
    )
)
X = torch.full((2, 3), 0.4)
STATE = torch.tensor([[0.1, 0.2], [0.05, 0.1]])


def people(lower: Tensor | None = None, upper: Tensor | None = None) -> People:
    low = torch.full((2, 3), -9.0) if lower is None else lower
    high = torch.full((2, 3), 9.0) if upper is None else upper
    return People(X, low, high, torch.ones(2), 1e-5)


def decode(state: Tensor) -> Tensor:
    return state @ A


def sum_of_squares(x: Tensor) -> Judgement:
    return Judgement(x.square().sum(1), 2 * x, x[:, 0] > 0)


def test_the_row_is_rounded_and_the_gradient_is_that_of_the_rounded_row_pulled_back() -> None:
    here = judged(STATE, decode, sum_of_squares, STEPS, people())
    rounded = decode(STATE)
    rounded[:, 0] = torch.tensor([0.25, 0.0])
    torch.testing.assert_close(here.row, rounded)
    torch.testing.assert_close(here.loss, rounded.square().sum(1))
    torch.testing.assert_close(here.gradient, 2 * rounded @ A.T)
    assert here.valid.tolist() == [True, False]


def test_it_works_where_gradients_are_switched_off() -> None:
    with torch.no_grad():
        here = judged(STATE, decode, sum_of_squares, STEPS, people())
    assert (here.gradient != 0).any()
    assert not here.gradient.requires_grad


def test_what_a_person_keeps_is_put_back_and_pulls_at_nothing() -> None:
    lower, upper = torch.full((2, 3), -9.0), torch.full((2, 3), 9.0)
    lower[:, 2] = upper[:, 2] = X[:, 2]
    here = judged(STATE, decode, sum_of_squares, STEPS, people(lower, upper))
    torch.testing.assert_close(here.row[:, 2], X[:, 2])
    torch.testing.assert_close(here.gradient, 2 * here.row[:, :2] @ A[:, :2].T)


def test_a_column_at_its_bound_is_pulled_inwards_only() -> None:
    def wants(direction: float) -> Tensor:
        def judge(x: Tensor) -> Judgement:
            return Judgement(x.sum(1), torch.full_like(x, -direction), x[:, 0] > 0)

        upper = torch.tensor([[9.0, 0.0, 9.0]]).expand(2, 3)  # column 1 lies beyond it
        return judged(STATE, decode, judge, STEPS, people(upper=upper)).gradient

    torch.testing.assert_close(wants(1.0), -(A[:, 0] + A[:, 2]).expand(2, 2))
    torch.testing.assert_close(wants(-1.0), A.sum(1).expand(2, 2))
