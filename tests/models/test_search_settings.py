"""What a search is refused for, and what a preset decides."""

import pytest

from gpae.errors import InputError
from gpae.models.search_settings import check_settings, decided


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None, "many"])
def test_a_count_is_a_whole_number_above_nothing(value: object) -> None:
    with pytest.raises(InputError, match="n_iterations="):
        check_settings({"n_iterations": value}, counts=["n_iterations"])
    check_settings({"n_iterations": 1, "patience": None}, counts=["n_iterations"], optional=["patience"])


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), None, "much"])
def test_a_number_is_not_below_its_least(value: object) -> None:
    with pytest.raises(InputError, match="weight="):
        check_settings({"weight": value}, least={"weight": 0.0})
    check_settings({"weight": 0}, least={"weight": 0.0})


def test_a_preset_decides_what_it_names_and_nothing_else() -> None:
    own = {"preset": "carla", "step": 7.0, "rounds": 3}
    assert decided(own, {"step": 0.1}) == {"preset": "carla", "step": 0.1, "rounds": 3}
    assert decided(own | {"preset": None}, {"step": 0.1})["step"] == 7.0
    assert own["step"] == 7.0
