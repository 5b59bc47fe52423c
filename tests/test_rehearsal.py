"""How far a search flatters: nothing where models do not differ, more where they do, the same for the same seed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from gpae import TabularExplainer
from gpae import rehearsal as module
from gpae.models.replicas import Replicas, believed
from gpae.rehearsal import _of_rival, rehearsed


@pytest.fixture(scope="module")
def rows(explainer: TabularExplainer, table: pd.DataFrame) -> np.ndarray:
    return explainer.learnt_.codec.encode(table).rows


@pytest.fixture(scope="module")
def replicas(explainer: TabularExplainer) -> Replicas:
    drawn = explainer.learnt_.trust.replicas
    assert drawn is not None
    return replace(drawn, odds=torch.ones((), dtype=torch.float64))


def test_a_rival_is_the_model_moved(explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray) -> None:
    method = explainer.learnt_.method
    rival = _of_rival(method, replicas.shifts[:, 3])
    moved = method.classifier_.decision_function(rows) + replicas.moved(rows)[:, 3]
    np.testing.assert_allclose(rival.classifier_.decision_function(rows), moved, atol=2e-5)  # moved in single precision
    assert rival.classifier_ is not method.classifier_


def test_the_method_itself_is_left_as_it_is(explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray) -> None:
    method = explainer.learnt_.method
    before = method.classifier_.decision_function(rows[:20])
    rehearsed(method, replicas, rows)
    np.testing.assert_array_equal(method.classifier_.decision_function(rows[:20]), before)


def test_fitting_rehearses(explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray) -> None:
    learnt = explainer.learnt_
    assert learnt.trust.replicas is not None
    odds = float(learnt.trust.replicas.odds)
    assert 0.05 <= odds <= 1.0
    assert float(rehearsed(learnt.method, replicas, rows, seed=explainer.seed).odds) == odds


def test_models_that_hardly_differ_leave_the_odds_alone(
    explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray
) -> None:
    """Every rival is the model itself: what is foretold is what comes."""
    still = replace(replicas, shifts=1e-9 * replicas.shifts)
    assert float(rehearsed(explainer.learnt_.method, still, rows).odds) == pytest.approx(1.0, abs=1e-3)


def test_the_odds_bring_what_is_foretold_down_to_what_comes(
    explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray
) -> None:
    method = explainer.learnt_.method
    shares = list(module._shares(method, replicas, rows, 0))
    foretold, actual = (np.concatenate(part) for part in zip(*shares, strict=True))
    assert foretold.mean() > actual.mean()  # a search finds where a model errs in its favour
    odds = float(rehearsed(method, replicas, rows).odds)
    assert odds < 1.0
    assert believed(foretold, odds).mean() == pytest.approx(actual.mean(), abs=1e-6)


def test_with_too_few_people_nothing_is_said(explainer: TabularExplainer, replicas: Replicas, rows: np.ndarray) -> None:
    refused = rows[explainer.learnt_.method.classifier_.decision_function(rows) < 0]
    assert float(rehearsed(explainer.learnt_.method, replicas, refused[:1]).odds) == 1.0
