"""How far an answer can be trusted: calibration, survival, margins, words, reasons and proofs, own model or given."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpae import TabularExplainer
from gpae.errors import InputError

SMALL: dict[str, Any] = {
    **{"n_features": 120, "max_epochs": 8, "density_features": 60, "density_draws": 2000, "latent_dim": 3},
    **{"label": "granted", "favourable": "yes", "immutable": ("age",)},
}
FEATURES = ["income", "debt", "job", "age"]


def loans(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(15, 120, n),
            "debt": np.round(rng.gamma(2.0, 8.0, n), 1),
            "job": rng.choice(["clerk", "nurse", "cook", "owner"], n),
            "age": rng.integers(18, 80, n),
        }
    )
    worth = (
        0.05 * (frame.income - 55)
        - 0.06 * frame.debt
        + frame.job.map({"clerk": 0.0, "nurse": 0.5, "cook": -0.5, "owner": 1.0})
    )
    frame["granted"] = np.where(worth + rng.logistic(0, 0.5, n) > 0, "yes", "no")
    return frame


TRAIN, VALID = loans(400, 0), loans(300, 1)


@pytest.fixture(scope="module")
def model() -> Any:
    columns = make_column_transformer((StandardScaler(), ["income", "debt", "age"]), (OneHotEncoder(), ["job"]))
    return make_pipeline(columns, LogisticRegression()).fit(TRAIN[FEATURES], TRAIN.granted)


@pytest.fixture(scope="module")
def given(model: Any) -> TabularExplainer:
    return TabularExplainer.explaining(model, TRAIN, validation=VALID, **SMALL)


@pytest.fixture(scope="module")
def uncalibrated(model: Any) -> TabularExplainer:
    return TabularExplainer.explaining(model, TRAIN, **SMALL)


@pytest.fixture(scope="module")
def own() -> TabularExplainer:
    return TabularExplainer(beta=0.1, **SMALL).fit(TRAIN, VALID)


@pytest.fixture(scope="module")
def people(model: Any) -> pd.DataFrame:
    """Thirty people whom the model refuses."""
    asked = loans(200, 2)[FEATURES]
    return asked[model.predict(asked) == "no"].head(30).reset_index(drop=True)


@pytest.fixture(params=["given", "own"])
def explainer(request: pytest.FixtureRequest) -> TabularExplainer:
    fitted: TabularExplainer = request.getfixturevalue(request.param)
    return fitted


def plans_of(table: pd.DataFrame) -> pd.DataFrame:
    return table[table.found]


def logit(p: Any) -> np.ndarray:
    p = np.asarray(p, dtype=float)
    return np.log(p / (1 - p))


# trust


@pytest.mark.parametrize("options", [{}, {"k": 2}])
def test_trust_is_a_share_and_only_plans_have_it(
    explainer: TabularExplainer, people: pd.DataFrame, options: dict[str, Any]
) -> None:
    table = explainer.explain(people, **options).table
    plans, others = plans_of(table), table[~table.found]
    assert len(plans) >= 20
    for name in ("calibrated", "survival"):
        assert plans[name].between(0, 1).all()
        assert others[name].isna().all()
    assert plans.survival.nunique() > 1


def test_what_a_method_finds_by_itself_is_priced_like_what_is_searched_by_cost(
    own: TabularExplainer, people: pd.DataFrame
) -> None:
    by_itself, searched = (own.explain(people, prefer=prefer).table for prefer in (None, "plausible"))
    both = by_itself.found & searched.found
    assert both.sum() > 5
    assert (by_itself.cost[both] > 0).all()
    assert (by_itself.cost[both] >= searched.cost[both] - 1e-6).mean() > 0.9, "the search is for cost"


def test_costs_are_known_where_plans_were_searched_by_cost(given: TabularExplainer, people: pd.DataFrame) -> None:
    plans = plans_of(given.explain(people, k=3).table)
    assert (plans.cost >= 0).all()
    assert plans.groupby("row").cost.is_monotonic_increasing.all()
    assert plans.groupby("row").size().max() > 1


def test_plans_last_as_long_as_was_asked(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    plain, lasting = (plans_of(explainer.explain(people, survival=level).table) for level in (None, 0.8))
    assert len(lasting) >= 15
    assert (lasting.survival >= 0.8).all()
    assert (lasting.probability > 0.5).all()
    assert (plain.survival < 0.8).any()


def test_a_margin_is_one_of_the_model_itself(given: TabularExplainer, model: Any, people: pd.DataFrame) -> None:
    plain, sure = (plans_of(given.explain(people, margin=margin).table) for margin in (None, 1.0))
    assert len(sure) >= 20
    assert (logit(model.predict_proba(sure[FEATURES])[:, 1]) >= 1.0).all()
    assert logit(plain.probability).min() < 1.0


def test_a_margin_of_an_own_classifier_is_had(own: TabularExplainer, people: pd.DataFrame) -> None:
    sure = plans_of(own.explain(people, margin=0.5).table)
    assert len(sure) >= 15
    assert (logit(own.predict_proba(sure)[:, 1]) >= 0.5 - 1e-9).all()


def test_probabilities_are_the_models_own(given: TabularExplainer, model: Any, people: pd.DataFrame) -> None:
    plans = plans_of(given.explain(people).table)
    np.testing.assert_allclose(plans.probability, model.predict_proba(plans[FEATURES])[:, 1], rtol=1e-9)
    assert (model.predict(plans[FEATURES]) == "yes").all()


def test_without_validation_nothing_is_calibrated(uncalibrated: TabularExplainer, people: pd.DataFrame) -> None:
    table = uncalibrated.explain(people).table
    assert table.found.any()
    assert table.calibrated.isna().all()


def test_calibrated_rises_with_the_probability(given: TabularExplainer, people: pd.DataFrame) -> None:
    plans = plans_of(given.explain(people, k=3).table).sort_values("probability")
    assert plans.probability.nunique() > 10
    assert plans.calibrated.is_monotonic_increasing
    assert plans.calibrated.iloc[-1] > plans.calibrated.iloc[0]


def test_calibrated_undoes_a_score_that_exaggerates(model: Any, people: pd.DataFrame) -> None:
    """Three times the logit of a calibrated model: calibrated on many rows, most of that is taken back."""

    def exaggerating(frame: pd.DataFrame) -> np.ndarray:
        return 1 / (1 + np.exp(-3.0 * logit(model.predict_proba(frame[FEATURES])[:, 1])))

    explainer = TabularExplainer.explaining(exaggerating, TRAIN, validation=loans(3000, 3), **SMALL)
    plans = plans_of(explainer.explain(people, margin=3.0).table)
    honest = model.predict_proba(plans[FEATURES])[:, 1]
    assert (np.abs(plans.calibrated - honest) < 0.1).all()
    assert (plans.probability - honest > 0.1).all()


def test_calibration_of_an_own_classifier_is_on_the_validation_table(own: TabularExplainer) -> None:
    """Platt's offset makes the mean of the calibrated the share of the favourable."""
    trust = own.learnt_.trust
    calibrated = trust.calibrated(logit(own.predict_proba(VALID)[:, 1]))
    assert calibrated.mean() == pytest.approx((VALID.granted == "yes").mean(), abs=1e-3)


# words, reasons, proofs


def test_sentences_have_one_line_a_change(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    answer = explainer.explain(people)
    told, changes = answer.sentences, answer.changes
    assert list(told.columns) == ["row", "plan", "feature", "low", "high", "range", "sentence"]
    keys = ["row", "plan", "feature"]
    pd.testing.assert_frame_equal(told[keys], changes[keys])
    for line, change in zip(told.itertuples(), changes.itertuples(), strict=True):
        assert line.sentence.startswith(("Raise ", "Lower ", "Change "))
        assert line.feature in line.sentence
        if line.feature == "job":
            assert f"from {change.before} to {change.after}" in line.sentence
        else:
            assert line.low <= float(change.after) <= line.high
        assert line.range in line.sentence


def test_the_ends_of_a_range_are_favoured_by_the_model_and_the_next_step_is_not(
    given: TabularExplainer, model: Any, people: pd.DataFrame
) -> None:
    answer = given.explain(people)
    plans = answer.table.set_index("row")[FEATURES]
    told = answer.sentences.query("feature == 'income'")
    assert len(told) >= 10
    least = plans.loc[told.row].assign(income=told.low.to_numpy())
    most = plans.loc[told.row].assign(income=told.high.to_numpy())
    assert (model.predict(least) == "yes").all()
    assert (model.predict(most) == "yes").all()
    below = least.assign(income=least.income - 1)[told.low.to_numpy() > TRAIN.income.min()]
    assert len(below) >= 10
    assert (model.predict(below) == "no").all()


def test_a_range_keeps_the_margin_that_was_asked(given: TabularExplainer, model: Any, people: pd.DataFrame) -> None:
    answer = given.explain(people, margin=1.0)
    told = answer.sentences.query("feature == 'income'")
    least = answer.table.set_index("row")[FEATURES].loc[told.row].assign(income=told.low.to_numpy())
    assert len(least) >= 10
    assert (logit(model.predict_proba(least)[:, 1]) >= 1.0).all()


def test_reasons_are_the_weightiest_first_and_of_the_refused(given: TabularExplainer, people: pd.DataFrame) -> None:
    rich = people.head(1).assign(income=119, debt=0.5, job="owner")
    reasons = given.explain(pd.concat([people, rich], ignore_index=True)).reasons
    assert list(reasons.columns) == ["row", "feature", "value", "usual", "weight"]
    assert set(reasons.row) == set(range(len(people)))
    assert (reasons.weight > 0).all()
    assert reasons.groupby("row").size().max() <= 3
    assert all(group.is_monotonic_decreasing for _, group in reasons.groupby("row").weight)
    first = reasons.iloc[0]
    assert first.value == str(people.loc[first.row, first.feature])


def test_certificates_are_of_those_without_a_plan(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    bad = people.head(4).copy()
    bad.loc[0, "job"] = "astronaut"
    rules = [{"kind": "within", "feature": "income", "up": 1, "down": 1}]
    answer = explainer.explain(bad, immutable=("debt", "job"), constraints=rules, deadline=30)
    proved = answer.table.query("status == 'infeasible'").row.tolist()
    assert proved
    assert 0 not in proved
    assert sorted(answer.certificates) == proved
    for proof in answer.certificates.values():
        assert set(proof) == {"ground", "best", "needed", "looked_at", "details"}
        assert proof["best"] is None or proof["best"] <= proof["needed"]
    told = answer.table.set_index("row").reason[proved]
    assert told.str.contains("without the rule").all()


def test_a_proof_can_be_challenged_and_its_program_taken_elsewhere(
    given: TabularExplainer, people: pd.DataFrame, model: Any
) -> None:
    answer = given.explain(people.head(2), margin=20.0)
    row, proof = 1, answer.certificates[1]
    assert proof["ground"] == "linear program"
    best = pd.DataFrame([proof["details"]["best_row"]])
    logit = model.decision_function(best[FEATURES])[0]
    assert logit == pytest.approx(proof["best"], abs=1e-5)
    assert best.age[0] == people.age[row]
    found = answer.challenge(row, draws=500)
    assert found["holds"]
    assert found["needed"] == 20.0
    assert found["asked"] == 500
    assert logit - 1.0 < found["best"] <= logit + 1e-9
    assert answer.program(row).startswith("\\ no plan")
    with pytest.raises(InputError, match="row 99 has no proof"):
        answer.program(99)
    with pytest.raises(InputError, match="draws is 0: ask for at least one row"):
        answer.challenge(row, draws=0)


def test_a_proof_without_a_program_says_so(given: TabularExplainer, people: pd.DataFrame) -> None:
    answer = given.explain(people.head(1), immutable=FEATURES)
    assert answer.challenge(0)["best_row"] == people[FEATURES].iloc[0].to_dict()
    with pytest.raises(InputError, match="'nothing may change', which takes no program"):
        answer.program(0)


def test_who_gets_a_plan_has_no_certificate(given: TabularExplainer, people: pd.DataFrame) -> None:
    answer = given.explain(people)
    assert answer.summary() == {"found": len(people)}
    assert answer.certificates == {}


# numbers as they are written


def numbers(kind: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.uniform(0, top, 600) for name, top in (("a", 1.0), ("b", 50.0), ("c", 100.0))})
    return frame.astype(kind).assign(granted=lambda f: np.where(60 * f.a - f.b + f.c / 2 > 30, "yes", "no"))


@pytest.fixture(scope="module", params=["float32", "float64"])
def of_numbers(request: pytest.FixtureRequest) -> TabularExplainer:
    train = numbers(request.param)
    model = LogisticRegression(max_iter=2000).fit(train[["a", "b", "c"]], train.granted)
    return TabularExplainer.explaining(model, train, **{**SMALL, "immutable": ()})


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rules_between_numbers_hold_whatever_their_precision(of_numbers: TabularExplainer, kind: str) -> None:
    table = numbers(kind).drop(columns="granted")
    refused = table[of_numbers.predict(table) == "no"].head(40).reset_index(drop=True)
    for rule, holds in (
        ("b = 0.3 * c", lambda f: np.abs(f.b - 0.3 * f.c) < 1e-6),
        ("b <= 0.3 * c", lambda f: f.b <= 0.3 * f.c + 1e-6),
    ):
        answer = of_numbers.explain(refused, constraints=[rule], immutable=("a",))
        plans = answer.table[answer.table.found]
        assert len(plans) > 25
        assert len(plans) + len(answer.certificates) == len(refused)
        assert holds(plans).all()
        assert "a" not in set(answer.changes.feature), (
            "what is copied from a column of another precision is not changed"
        )
        assert (plans.a.to_numpy() == refused.a.to_numpy()[plans.row]).all()


def test_numbers_at_a_bound_are_the_bound(of_numbers: TabularExplainer) -> None:
    table = numbers("float64").drop(columns="granted")
    refused = table[of_numbers.predict(table) == "no"].head(40).reset_index(drop=True)
    odd = 1 / 3 + 1 / 7
    rules = [{"kind": "range", "feature": "a", "minimum": odd, "maximum": odd},
             {"kind": "range", "feature": "c", "maximum": 70.7}]  # fmt: skip
    plans = of_numbers.explain(refused, constraints=rules).table.query("found")
    assert len(plans) == len(refused)
    assert (plans.a.astype(np.float32) == np.float32(odd)).all()
    if plans.a.dtype == np.float64:
        assert (plans.a == odd).all()
    assert (plans.c.astype("float64") <= 70.7 + 1e-5 * (plans.c.dtype == np.float32)).all()
    assert (plans.c.astype("float64").round(4) == 70.7).any()


# files


def test_a_given_model_is_put_together_again_with_what_was_saved(
    given: TabularExplainer, model: Any, people: pd.DataFrame, tmp_path: Path
) -> None:
    given.save(tmp_path / "mine.gpae")
    again = TabularExplainer.load(tmp_path / "mine.gpae", model=model)
    before, after = (one.explain(people, k=2, survival=0.6) for one in (given, again))
    pd.testing.assert_frame_equal(after.table, before.table, check_exact=True)
    pd.testing.assert_frame_equal(after.sentences, before.sentences, check_exact=True)
    assert again.fidelity_ == given.fidelity_


def test_an_own_model_keeps_what_it_knows_of_trust(own: TabularExplainer, people: pd.DataFrame, tmp_path: Path) -> None:
    own.save(tmp_path / "own.gpae")
    again = TabularExplainer.load(tmp_path / "own.gpae")
    pd.testing.assert_frame_equal(again.explain(people).table, own.explain(people).table, check_exact=True)


def test_a_file_without_its_model_is_refused(given: TabularExplainer, tmp_path: Path) -> None:
    given.save(tmp_path / "mine.gpae")
    with pytest.raises(InputError, match=r"explains a model that is not in the file.*model="):
        TabularExplainer.load(tmp_path / "mine.gpae")


def test_another_model_than_the_one_that_was_explained_is_refused(
    given: TabularExplainer, model: Any, tmp_path: Path
) -> None:
    given.save(tmp_path / "mine.gpae")
    strict = make_pipeline(model[0], LogisticRegression()).fit(TRAIN[FEATURES], TRAIN.income > 100)
    with pytest.raises(InputError, match=r"not the model that the explainer was made for.* it favours \d+%; give the"):
        TabularExplainer.load(tmp_path / "mine.gpae", model=strict)
    with pytest.raises(InputError, match=r"the model gives no probabilities, which the explainer was made with"):
        TabularExplainer.load(tmp_path / "mine.gpae", model=model.predict)


def test_an_end_that_a_rule_sets_is_told(given: TabularExplainer, people: pd.DataFrame) -> None:
    rules = [{"kind": "range", "feature": "income", "maximum": 90}, {"kind": "step", "feature": "income", "step": 5}]
    free, bound = (given.explain(people, prefer="sparse", constraints=c).sentences for c in ([], rules))
    assert free[free.feature == "income"]["range"].str.fullmatch(r"at least [\d.]+").all()
    assert bound[bound.feature == "income"]["range"].str.fullmatch(r"[\d.]+ to [\d.]+, in steps of 5|exactly .*").all()
    assert len(bound[bound.feature == "income"]) > 3


def test_a_model_for_a_file_that_has_its_own_is_refused(own: TabularExplainer, model: Any, tmp_path: Path) -> None:
    own.save(tmp_path / "own.gpae")
    with pytest.raises(InputError, match=r"the classifier that is in the file; load it without model="):
        TabularExplainer.load(tmp_path / "own.gpae", model=model)


# arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"survival": 2}, r"survival=2 must be a share from 0 to 1"),
        ({"survival": -0.1}, r"survival=-0.1 must be a share"),
        ({"survival": True}, r"survival=True must be a share"),
        ({"survival": float("nan")}, r"survival=nan must be a share"),
        ({"margin": -1}, r"margin=-1 must be a number of logit units"),
        ({"margin": "wide"}, r"margin='wide' must be a number of logit units"),
        ({"margin": float("inf")}, r"margin=inf must be"),
        ({"prefer": "cheap"}, r"'cheap'.*plausible.*near.*sparse"),
        ({"prefer": 3}, r"prefer"),
        ({"deadline": 0}, r"deadline=0 must be a number of seconds above 0"),
        ({"deadline": float("nan")}, r"deadline=nan must be"),
    ],
)
def test_wrong_arguments_are_refused_in_their_own_words(
    given: TabularExplainer, people: pd.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        given.explain(people.head(2), **options)


def test_a_proof_about_lasting_plans_is_about_what_the_answer_reports() -> None:
    """Plans are searched for with caution; that there is none is proved without."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame(
        {"a": rng.integers(0, 7, 250), "b": rng.integers(0, 6, 250), "c": rng.choice(list("xyz"), 250)}
    )
    worth = table.a - 0.8 * table.b + 1.5 * (table.c == "x") + rng.normal(0, 2.5, 250)
    table["ok"] = np.where(worth > 2.5, "yes", "no")
    explainer = TabularExplainer(label="ok", favourable="yes", n_features=60, max_epochs=8, seed=2).fit(table)
    person = table[explainer.predict(table) == "no"].head(1)
    every = pd.DataFrame(list(product(range(7), range(6), "xyz")), columns=["a", "b", "c"])
    learnt = explainer.learnt_
    rows = learnt.codec.encode(every).rows
    lasts = learnt.trust.survival(rows, learnt.method.classifier_.decision_function(rows))
    favoured = lasts[explainer.predict(every) == "yes"]
    for level in (0.8, 0.9, 0.95, 0.99):
        status = explainer.explain(person, survival=level).table.status.iloc[0]
        assert status == ("found" if (favoured >= level).any() else "infeasible")


def test_survival_cannot_be_asked_of_what_cannot_be_redrawn(people: pd.DataFrame) -> None:
    explainer = TabularExplainer(label="granted", favourable="yes", method="logistic").fit(TRAIN)
    assert explainer.explain(people).table.survival.isna().all()
    with pytest.raises(InputError, match=r"survival=0.9 cannot be asked of this method"):
        explainer.explain(people.head(2), survival=0.9)


# the same for everybody, always


@pytest.mark.parametrize("options", [{}, {"k": 3}, {"k": 3, "constraints": ["debt <= 0.4 * income"]}])
def test_an_answer_does_not_depend_on_who_else_asks(
    given: TabularExplainer, people: pd.DataFrame, options: dict[str, Any]
) -> None:
    together = given.explain(people, **options).table
    for row in range(len(people)):
        alone = given.explain(people.iloc[[row]], **options).table
        mine = together[together.row == row].reset_index(drop=True)
        pd.testing.assert_frame_equal(alone[[*FEATURES, "status"]], mine[[*FEATURES, "status"]], check_exact=True)


def test_the_same_seed_gives_the_same_answer(model: Any, given: TabularExplainer, people: pd.DataFrame) -> None:
    again = TabularExplainer.explaining(model, TRAIN, validation=VALID, **SMALL)
    first, second = (one.explain(people, k=2, seed=3).table for one in (given, again))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_how_well_the_surrogate_knows_the_model_is_known(given: TabularExplainer, own: TabularExplainer) -> None:
    assert given.fidelity_ is not None
    assert 0.8 < given.fidelity_.agreement <= 1
    assert own.fidelity_ is None


def test_bounds_of_each_person_stay_theirs_beside_a_row_that_cannot_be_read(
    explainer: TabularExplainer, people: pd.DataFrame
) -> None:
    asked = people.head(4).copy()
    most = (asked.income + np.array([5, 10, 15, 20])).tolist()
    rule = {"kind": "range", "feature": "income", "maximum": most}
    whole = explainer.explain(asked, constraints=[rule]).table.set_index("row")
    asked.loc[1, "job"] = "astronaut"
    table = explainer.explain(asked, constraints=[rule]).table.set_index("row")
    assert table.status[1] == "bad_input"
    assert table.drop(1).found.any()
    pd.testing.assert_frame_equal(
        table.drop(1)[["status", "income", "debt"]], whole.drop(1)[["status", "income", "debt"]]
    )
    with pytest.raises(InputError, match="3 bounds for 4 rows"):
        explainer.explain(asked, constraints=[rule | {"maximum": most[:3]}])


def test_a_model_of_the_other_label_is_refused(model: Any) -> None:
    """Explained, it would tell everybody what to do for a no."""
    with pytest.raises(InputError, match=r"lower where the label is 'yes' \(AUC 0\.\d\d\): .* of the other label"):
        TabularExplainer.explaining(lambda table: model.predict_proba(table)[:, 0], TRAIN, **SMALL)
