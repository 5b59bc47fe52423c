"""The choice of settings on validation rows."""

import numpy as np
import pytest

from gpae.benchmark.classifiers import Parts
from gpae.benchmark.contenders import GUISES, contender
from gpae.benchmark.ranks import SEVEN
from gpae.benchmark.studies.paper import FREE
from gpae.benchmark.tuning import TRIALS, Trial, best_trial, retuned, trial_name
from gpae.errors import InputError
from gpae.explainers import EXPLAINERS
from gpae.explainers.logistic import Logistic
from gpae.explainers.wachter import Wachter
from tests.explainers.linear_boundary import plane_classifier, square


def trial(value: float) -> Trial:
    """The same value of every metric: lower is better for four of them, higher for three."""
    return Trial({}, dict.fromkeys(SEVEN, value))


def test_a_setting_is_ranked_among_the_defaults_of_the_others_and_not_among_their_trials() -> None:
    trials = {"a": [trial(0.5), trial(0.2)], "b": [trial(0.4), trial(0.0)], "c": [trial(0.3), trial(0.1)]}
    assert best_trial("a", trials) == 1
    assert best_trial("a", {"a": [trial(0.5), trial(0.6)], "b": [trial(0.4)]}) == 0


def test_equal_trials_leave_the_default() -> None:
    assert best_trial("a", {"a": [trial(0.201), trial(0.199)], "b": [trial(0.4)]}) == 0


def test_a_setting_that_answers_nobody_is_not_chosen() -> None:
    nothing = Trial({}, dict.fromkeys(SEVEN, np.nan) | {"Validity": 0.0})
    assert best_trial("a", {"a": [trial(0.5), nothing], "b": [trial(0.4)], "c": [trial(0.6)]}) == 0


def test_everybody_has_as_many_trials_and_each_names_parameters_of_its_method() -> None:
    assert set(TRIALS) == set(FREE)
    assert {len(trials) for name, trials in TRIALS.items() if name != "counternet"} == {4}
    for name, trials in TRIALS.items():
        known = EXPLAINERS[name]().get_params()
        for settings in trials:
            assert callable(settings) or set(settings) <= set(known)


def parts() -> Parts:
    X, _ = square(300)
    y = (X[:, 0] > 0.5).astype(np.int64)
    return Parts((X, y), (X[:100], y[:100]), (X[:50], y[:50]))


def test_a_retuned_method_searches_otherwise_and_the_fitted_one_stays_as_it_was() -> None:
    layout = square(300)[1]
    method = Wachter(classifier=plane_classifier([8.0, 4.0], 6.0)).fit(*parts().train, layout=layout)
    shrunk, settings = retuned("wachter", method, 1, parts(), layout)
    assert settings == {"shrink": True}
    people = np.array([[0.2, 0.3]])
    near, far = (m.explain(people).counterfactual - people for m in (shrunk, method))
    assert np.square(near).sum() < np.square(far).sum()
    assert retuned("wachter", method, 0, parts(), layout) == (method, {})


def test_settings_that_matter_at_the_fit_are_fitted_and_the_classifier_is_kept() -> None:
    layout = square(300)[1]
    model = plane_classifier([8.0, 4.0], 6.0)
    model.logit_spread_ = 2.0
    fitted = contender("face").make(model, None).fit(*parts().train, layout=layout)
    sure, settings = retuned("face", fitted, 2, parts(), layout)
    assert settings == {"min_probability": 0.75}
    assert sure.classifier_ is model
    assert sure.graph_ is fitted.graph_  # type: ignore[attr-defined]
    assert sure.nodes_.targets.sum() < fitted.nodes_.targets.sum()  # type: ignore[attr-defined]


def test_the_margin_is_in_spreads_of_the_logits() -> None:
    model = plane_classifier([8.0, 4.0], 6.0)
    model.logit_spread_ = 2.0
    settings = TRIALS["gpae"][2]
    assert callable(settings)
    assert settings(model) == {"beta": 0.001, "margin": 1.0}
    assert trial_name("gpae", 3) == "beta 0.001, margin 0.5 spreads"


@pytest.mark.parametrize("name", ["wachter", "cchvae", "revise", "cruds", "clue"])
def test_methods_that_cross_the_boundary_of_the_shared_classifier_may_try_a_margin_as_gpae_does(name: str) -> None:
    model = plane_classifier([8.0, 4.0], 6.0)
    model.logit_spread_ = 2.0
    margins = [settings for settings in TRIALS[name] if callable(settings)]
    assert [settings(model) for settings in margins] == [{"margin": 1.0}]
    assert trial_name(name, 4) == "margin 0.5 spreads"


def test_a_trial_is_named_by_what_it_changes() -> None:
    assert trial_name("wachter", 0) == "default"
    assert trial_name("wachter", 3) == "distance_weight 0.1, shrink True"


def test_a_guise_is_a_method_with_settings_under_a_name_of_its_own() -> None:
    made = contender("logistic-one-step").make(plane_classifier([1.0, 1.0], 1.0), "carla")
    assert isinstance(made, Logistic)
    assert made.rounds == 1
    labels = {one.label for one in GUISES.values()}
    assert not labels & {EXPLAINERS.paper_name(name) for name in EXPLAINERS}


def test_a_preset_goes_to_methods_that_have_it() -> None:
    model = plane_classifier([1.0, 1.0], 1.0)
    assert contender("Wachter").make(model, "carla").get_params()["preset"] == "carla"
    assert "preset" not in contender("GPAE").make(model, "carla").get_params()
    assert contender("REVISE").make(model, "carla").get_params()["objective"] == "carla_legacy"
    assert contender("REVISE").make(model, None).get_params()["objective"] == "balanced"


def test_an_unknown_contender_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown method 'dice'.*logistic-one-step"):
        contender("dice")


@pytest.mark.parametrize("name", ["cchvae", "clue", "cruds", "revise"])
def test_a_trial_is_what_anybody_gets_who_fits_with_its_settings(name: str) -> None:
    """What was trained is handed over, so that only the settings differ."""
    layout, model = square(300)[1], plane_classifier([8.0, 4.0], 6.0)
    model.logit_spread_ = 2.0
    fitted = contender(name).make(model, None).fit(*parts().train, layout=layout, validation=parts().valid)
    people = np.array([[0.2, 0.3], [0.3, 0.6], [0.5, 0.2]])
    for number in range(1, len(TRIALS[name]) + 1):
        tuned, settings = retuned(name, fitted, number, parts(), layout)
        fresh = type(fitted)(**(fitted.get_params(deep=False) | {"autoencoder": fitted.autoencoder_} | dict(settings)))  # type: ignore[attr-defined]
        fresh.fit(*parts().train, layout=layout, validation=parts().valid)
        one, other = (method.explain(people).counterfactual for method in (tuned, fresh))
        np.testing.assert_array_equal(one, other)
