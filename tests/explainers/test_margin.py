"""A margin: answers lie that far beyond the boundary, and who cannot get so far takes one without."""

from typing import Any

import numpy as np
import pytest
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers import EXPLAINERS

SLOPE, OFFSET = np.array([8.0, 4.0]), 6.0
PERSONS = np.array([[0.2, 0.3], [0.3, 0.6], [0.5, 0.2], [0.1, 0.7]])
CROSSING = ["wachter", "cchvae", "revise", "cruds", "clue"]


@pytest.fixture(scope="module", params=CROSSING)
def fitted(request: pytest.FixtureRequest) -> Any:
    rows, layout = square(400)
    method = EXPLAINERS[request.param](classifier=plane_classifier(list(SLOPE), OFFSET))
    return method.fit(rows, (rows @ SLOPE > OFFSET).astype(np.int64), layout=layout)


def logits(method: Any, margin: float) -> np.ndarray:
    answer = method.set_params(margin=margin).explain(PERSONS)
    assert answer.found.all()
    return np.asarray(answer.counterfactual @ SLOPE - OFFSET)


def test_answers_lie_beyond_the_margin_or_where_they_lie_without_it(fitted: Any) -> None:
    plain, clear = logits(fitted, 0.0), logits(fitted, 1.0)
    assert (plain > 0).all()
    assert ((clear > 1.0 - 1e-4) | (clear == plain)).all()
    assert (clear > plain + 0.5).any()  # how many get there is the auto-encoder's matter


def test_a_margin_that_nobody_can_reach_is_not_asked(fitted: Any) -> None:
    """The highest logit of the square is 6."""
    np.testing.assert_array_equal(logits(fitted, 7.0), logits(fitted, 0.0))


@pytest.mark.parametrize("margin", [-1.0, True, "auto", float("nan")])
def test_what_is_no_margin_is_refused(fitted: Any, margin: Any) -> None:
    rows, layout = square(400)
    with pytest.raises(InputError, match="margin"):
        type(fitted)(margin=margin).fit(rows, np.arange(400) % 2, layout=layout)
