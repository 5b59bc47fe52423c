"""Calibration: simulated labels give back the line that they were drawn from."""

import numpy as np
import pytest

from gpae.models.calibration import Calibration


def drawn(slope: float, offset: float, n: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and labels that are right as often as the calibrated logit says."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 2.0, n)
    p = 1.0 / (1.0 + np.exp(-(slope * logits + offset)))
    return logits, (rng.random(n) < p).astype(np.int64)


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.5, -0.7), (2.0, 1.0)])
def test_a_known_slope_and_offset_are_recovered(slope: float, offset: float) -> None:
    fitted = Calibration.of(*drawn(slope, offset))
    assert fitted is not None
    assert fitted.slope == pytest.approx(slope, rel=0.06)
    assert fitted.offset == pytest.approx(offset, abs=0.08)


def test_the_probability_is_the_logistic_of_the_line() -> None:
    said = Calibration(0.5, -1.0)(np.array([-2.0, 2.0, 4.0]))
    np.testing.assert_allclose(said, 1.0 / (1.0 + np.exp([2.0, 0.0, -1.0])), rtol=1e-12)


def test_rows_of_one_class_say_nothing() -> None:
    logits = np.linspace(-3.0, 3.0, 50)
    for label in (0, 1):
        assert Calibration.of(logits, np.full(50, label)) is None


def test_a_higher_score_is_never_less_probable() -> None:
    fitted = Calibration.of(*drawn(0.8, 0.3, 500))
    assert fitted is not None
    said = fitted(np.linspace(-40.0, 40.0, 401))
    assert (np.diff(said) >= 0).all()
    assert said[0] < 1e-6 < 1 - 1e-6 < said[-1]


def test_endless_scores_and_a_model_that_is_never_wrong_stay_finite() -> None:
    logits = np.repeat([-1.0, 1.0], 100)
    fitted = Calibration.of(logits, (logits > 0).astype(np.int64))
    assert fitted is not None
    assert np.isfinite([fitted.slope, fitted.offset]).all()
    assert np.isfinite(fitted(np.array([-1e6, 1e6]))).all()
