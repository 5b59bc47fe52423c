import dataclasses

from gpae.report.demo_view import Quality
from gpae.report.wording import classifier_words, density_words, divergence_words

QUALITY = Quality(1000, 0.812, 0.893, 0.5, -4.2, -4.9)


def test_the_classifier_is_set_beside_the_majority():
    said = classifier_words(QUALITY)
    assert "1,000 rows" in said
    assert "81.2 %" in said
    assert "50.0 %" in said
    assert "0.893" in said


def test_a_density_below_its_envelope_is_not_praised():
    assert "0.70 less" in density_words(QUALITY)
    assert "with caution" in density_words(dataclasses.replace(QUALITY, log_density=-5.0))


def test_a_minimum_at_the_edge_is_not_called_a_minimum(choice_of):
    assert "the grid, not the curve" in divergence_words(choice_of([4, 3, 2, 1]))
    assert "the grid, not the curve" not in divergence_words(choice_of([4, 3, 1, 2]))


def test_a_flat_curve_is_called_flat(choice_of):
    assert "Between β = 0.4 and 0.7" in divergence_words(choice_of([4, 1.1, 1, 4]))
    assert "Between" not in divergence_words(choice_of([4, 3, 1, 4]))
