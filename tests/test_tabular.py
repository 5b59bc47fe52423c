"""Tables in, tables out: the public face, as a user meets it."""

import hashlib
import json
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from gpae import Change, Schema, TabularExplainer
from gpae.answer import OWN_COLUMNS
from gpae.artefact import State, read_artefact, write_artefact
from gpae.errors import ArtefactError, InputError
from gpae.search import newton, polish
from tests.conftest import SMALL, loans


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return loans(120, seed=3).drop(columns="granted")


@pytest.fixture(scope="module")
def answers(explainer: TabularExplainer, people: pd.DataFrame) -> pd.DataFrame:
    return explainer.explain(people, k=2).table


def test_the_table_has_the_columns_of_the_contract_in_order(answers: pd.DataFrame, people: pd.DataFrame) -> None:
    assert list(answers.columns) == [*OWN_COLUMNS[:4], *people.columns, *OWN_COLUMNS[4:]]
    assert set(answers.status) <= {"found", "already_favourable"}
    assert answers.row.nunique() == len(people)


def test_every_plan_is_favourable_as_written(explainer: TabularExplainer, answers: pd.DataFrame) -> None:
    plans = answers[answers.found]
    probability = explainer.predict_proba(plans)[:, 1]
    assert (probability > 0.5).all()
    np.testing.assert_array_equal(probability, plans.probability.to_numpy())
    assert (explainer.predict(plans) == "yes").all()


def test_immutables_are_copied_and_values_are_whole_steps(answers: pd.DataFrame, people: pd.DataFrame) -> None:
    plans = answers[answers.found]
    now = people.iloc[plans.row.to_numpy()].reset_index(drop=True)
    assert (plans.age.to_numpy() == now.age.to_numpy()).all()
    assert (plans.loan.to_numpy() % 25 == 0).all()
    assert plans.income.dtype == "Int64"
    assert set(plans.job) <= {"clerk", "nurse", "cook", "owner"}
    assert not (plans.score.isna() & now.score.notna().to_numpy()).any()


def test_figures_of_a_plan_are_what_they_say(explainer: TabularExplainer, answers: pd.DataFrame, people) -> None:
    plans = answers[answers.found]
    X, U = (explainer.codec_.encode(f).rows for f in (people.iloc[plans.row.to_numpy()], plans))
    np.testing.assert_allclose(plans.distance, np.linalg.norm(U - X, axis=1), rtol=1e-12)
    assert (plans.changes.to_numpy() == explainer.codec_.layout.n_changes(U, X)).all()
    assert plans.plausibility.between(0, 100).all()
    train = explainer.codec_.encode(loans()).rows
    model = explainer.method_.classifier_
    reference = model.score_samples(train[model.decision_function(train) > 0])
    expected = [(reference <= value).mean() * 100 for value in plans.log_density]
    np.testing.assert_allclose(plans.plausibility, expected, rtol=1e-9)


def test_lines_without_a_plan_hold_nulls_and_a_reason(answers: pd.DataFrame, people: pd.DataFrame) -> None:
    others = answers[~answers.found]
    assert len(others)
    assert others[list(people.columns)].isna().all(axis=None)
    assert (others.reason.str.len() > 0).all()
    assert (answers[answers.found].reason == "").all()


def test_changes_and_summary_agree_with_the_table(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    answer = explainer.explain(people)
    counts = answer.changes.groupby("row").size()
    plans = answer.table[answer.table.found].set_index("row")
    assert (counts == plans.changes[counts.index]).all()
    assert answer.summary() == answer.table.status.value_counts().to_dict()
    first = answer.changes.iloc[0]
    assert str(people.loc[first["row"], first["feature"]]) == first["before"]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_the_same_kind_of_frame_comes_back_with_the_same_values(explainer, people, kind: str) -> None:
    frame = pl.from_pandas(people) if kind == "polars" else pa.Table.from_pandas(people, preserve_index=False)
    answer = explainer.explain(frame)
    assert isinstance(answer.table, pl.DataFrame if kind == "polars" else pa.Table)
    assert answer.arrow.equals(explainer.explain(people).arrow)


def test_an_answer_is_the_same_alone_reordered_reloaded_and_in_another_process(
    explainer: TabularExplainer, people: pd.DataFrame, tmp_path: Path
) -> None:
    whole = explainer.explain(people, k=2).arrow
    explainer.save(tmp_path / "m.gpae")
    people.to_parquet(tmp_path / "people.parquet")
    again = TabularExplainer.load(tmp_path / "m.gpae")
    assert again.explain(people, k=2).arrow.equals(whole)
    backwards = again.explain(people.iloc[::-1], k=2).table
    backwards["row"] = len(people) - 1 - backwards["row"]
    backwards = backwards.sort_values(["row", "plan"], ignore_index=True)
    pd.testing.assert_frame_equal(backwards, explainer.explain(people, k=2).table, check_exact=True)
    code = (
        "import sys, pandas as pd; from gpae import TabularExplainer as T;"
        "e = T.load(sys.argv[1] + '/m.gpae'); q = pd.read_parquet(sys.argv[1] + '/people.parquet');"
        "e.explain(q.iloc[40:47], k=2).to_parquet(sys.argv[1] + '/out.parquet')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    other = pd.read_parquet(tmp_path / "out.parquet")
    mine = whole.to_pandas()
    mine = mine[mine.row.between(40, 46)].reset_index(drop=True)
    np.testing.assert_array_equal(other.probability, mine.probability)
    np.testing.assert_array_equal(other.debt, mine.debt)
    assert (other.job.fillna("") == mine.job.fillna("")).all()


def test_company_does_not_matter_where_nothing_is_compiled(
    explainer: TabularExplainer, people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton, "walker", lambda *_: None)
    monkeypatch.setattr(polish, "finisher", lambda *_: None)
    refused = people[explainer.predict_proba(people)[:, 1] < 0.5].head(12)
    whole = explainer.explain(refused).arrow.drop_columns("row")
    assert whole.num_rows == len(refused)
    for at in range(len(refused)):
        alone = explainer.explain(refused.iloc[[at]]).arrow.drop_columns("row")
        assert alone.equals(whole.slice(at, 1).combine_chunks())


def test_saving_twice_gives_the_same_bytes_and_no_pickle(explainer: TabularExplainer, tmp_path: Path) -> None:
    explainer.save(tmp_path / "a.gpae")
    TabularExplainer.load(tmp_path / "a.gpae").save(tmp_path / "b.gpae")
    assert (tmp_path / "a.gpae").read_bytes() == (tmp_path / "b.gpae").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.gpae", "b.gpae"]


def test_directions_of_the_schema_are_obeyed(table: pd.DataFrame, people: pd.DataFrame, tmp_path: Path) -> None:
    schema = Schema.infer(table, label="granted", favourable="yes")
    features = tuple(
        f.model_copy(update={"change": {"income": Change.up, "debt": Change.down}.get(f.name, f.change)})
        for f in schema.features
    )
    schema.model_copy(update={"features": features}).save(tmp_path / "schema.yaml")
    explainer = TabularExplainer(label="granted", favourable="yes", schema=tmp_path / "schema.yaml", beta=0.1, **SMALL)
    plans = explainer.fit(table).explain(people).table
    plans = plans[plans.found]
    now = people.iloc[plans.row.to_numpy()].reset_index(drop=True)
    assert len(plans) > 20
    assert (plans.income.to_numpy() >= now.income.to_numpy()).all()
    assert (plans.debt.to_numpy() <= now.debt.to_numpy()).all()


def test_an_immutable_of_the_call_adds_to_the_schemas(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    plans = explainer.explain(people, immutable=("job", "income")).table
    plans = plans[plans.found]
    now = people.iloc[plans.row.to_numpy()].reset_index(drop=True)
    for name in ("age", "job", "income"):
        assert (plans[name].to_numpy() == now[name].to_numpy()).all()


def test_a_bad_row_is_answered_as_such_and_does_not_disturb_the_others(explainer, people: pd.DataFrame) -> None:
    broken = people.copy()
    broken.loc[5, "job"] = "astronaut"
    broken.loc[9, "debt"] = np.inf
    broken.loc[11, "debt"] = 1e300
    table = explainer.explain(broken).table
    bad = table[table.status == "bad_input"]
    assert bad.row.tolist() == [5, 9, 11]
    assert "1e+300" in bad.reason.iloc[2]
    assert "astronaut" in bad.reason.iloc[0]
    assert "'job'" in bad.reason.iloc[0]
    assert "'debt'" in bad.reason.iloc[1]
    clean = explainer.explain(people).table
    keep = ~clean.row.isin([5, 9, 11])
    pd.testing.assert_frame_equal(
        table[~table.row.isin([5, 9, 11])].reset_index(drop=True), clean[keep].reset_index(drop=True), check_exact=True
    )


def test_a_table_of_bad_rows_only_is_answered_too(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    table = explainer.explain(people.head(2).assign(job="astronaut")).table
    assert table.status.tolist() == ["bad_input", "bad_input"]


def test_a_collision_of_names_is_refused_unless_a_prefix_is_given(table: pd.DataFrame, people: pd.DataFrame) -> None:
    renamed = table.rename(columns={"score": "status"})
    with pytest.raises(InputError, match=r"'status'.*prefix"):
        TabularExplainer(label="granted", favourable="yes", **SMALL).fit(renamed)
    explainer = TabularExplainer(label="granted", favourable="yes", prefix="cf_", beta=0.1, **SMALL).fit(renamed)
    answer = explainer.explain(people.rename(columns={"score": "status"}).head(5))
    assert {"cf_status", "status", "cf_found"} <= set(answer.table.columns)
    assert sum(answer.summary().values()) == 5


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"'depth'.*known:.*latent_dim"):
        TabularExplainer(label="y", favourable=1, depth=3)
    with pytest.raises(InputError, match=r"unknown method 'magic'; known: .*gpae"):
        TabularExplainer(label="y", favourable=1, method="magic")
    with pytest.raises(InputError, match=r"immutable=\('age',\)"):
        TabularExplainer(label="y", favourable=1, immutable="age")


def test_options_that_make_no_sense_are_refused(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    for options, message in (
        ({"deadline": -1}, "deadline"),
        ({"deadline": "soon"}, "deadline"),
        ({"constraints": "income <= 3"}, "must be a list"),
        ({"constraints": ["incom <= 3"]}, "'income'"),
        ({"prefer": "cheap"}, "plausible"),
        ({"k": 2.5}, "whole number"),
    ):
        with pytest.raises(InputError, match=message):
            explainer.explain(people.head(2), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"scaling": "foo"},
        {"seed": -1},
        {"seed": 1.5},
    ],
)
def test_a_value_that_is_not_known_is_refused_at_once(options) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        TabularExplainer(label="y", favourable=1, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "foo"},
        {"divergence": "foo"},
        {"fourier": "foo"},
        {"density_on": "foo"},
        {"class_weight": "foo"},
        {"beta": -1},
        {"beta": float("nan")},
        {"margin": 0},
        {"beta_grid": ()},
        {"n_features": 0},
        {"latent_dim": 2.5},
        {"patience": 0},
        {"length_scale": -1.0},
        {"learning_rate": 0},
        {"device": "xyz"},
    ],
)
def test_a_value_that_makes_no_sense_is_refused_at_fit(table: pd.DataFrame, options) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        TabularExplainer(label="granted", favourable="yes", **(SMALL | options)).fit(table)


def test_numpy_scalars_can_be_saved(table: pd.DataFrame, tmp_path: Path) -> None:
    frame = table.assign(granted=(table.granted == "yes").astype(int))
    explainer = TabularExplainer(
        label="granted", favourable=frame.granted.max(), seed=np.int64(3), beta=np.float64(0.1), **SMALL
    ).fit(frame)
    explainer.save(tmp_path / "m.gpae")
    assert TabularExplainer.load(tmp_path / "m.gpae").favourable == 1


def test_a_schema_that_contradicts_the_call_is_refused(table: pd.DataFrame) -> None:
    schema = Schema.infer(table, label="granted", favourable="yes")
    with pytest.raises(InputError, match="favourable"):
        TabularExplainer(label="granted", favourable="no", schema=schema, **SMALL).fit(table)
    with pytest.raises(InputError, match="drop"):
        TabularExplainer(label="granted", favourable="yes", schema=schema, drop=("job",), **SMALL).fit(table)


def test_a_column_without_a_name_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"column 9 .*has no name"):
        TabularExplainer(label="granted", favourable="yes", **SMALL).fit(table.assign(**{"": range(len(table))}))


def test_what_a_narrower_training_type_cannot_hold_is_still_copied_bit_for_bit(table: pd.DataFrame) -> None:
    narrow = table.assign(debt=table.debt.astype("float32"))
    explainer = TabularExplainer(label="granted", favourable="yes", immutable=("debt",), beta=0.1, **SMALL).fit(narrow)
    people = table[explainer.predict(table) == "no"].head(5).assign(debt=1 / 3).drop(columns="granted")
    plans = explainer.explain(people).table
    assert (plans.debt[plans.found] == 1 / 3).all()


def test_nothing_to_change_is_a_proof_and_no_two_plans_change_the_same_features(
    explainer: TabularExplainer, people
) -> None:
    refused = people[explainer.predict(people) == "no"].head(4)
    stuck = explainer.explain(refused, immutable=tuple(people.columns))
    assert stuck.summary() == {"infeasible": 4}
    assert stuck.table.reason.str.contains("nothing of this row may change").all()
    assert {proof["ground"] for proof in stuck.certificates.values()} == {"nothing may change"}
    many = explainer.explain(refused, k=50).changes
    sets = many.groupby(["row", "plan"]).feature.agg(frozenset)
    assert not sets.groupby("row").agg(lambda each: each.duplicated().any()).any()
    assert sets.groupby("row").size().max() > 4


def test_a_row_that_cannot_reach_the_margin_settles_for_less(table: pd.DataFrame) -> None:
    """With a margin that no row can have, plans just across the boundary are still found."""
    explainer = TabularExplainer(label="granted", favourable="yes", beta=0.1, margin=0.1, **SMALL).fit(table)
    top = explainer.method_.classifier_.decision_function(explainer.codec_.encode(table).rows).max()
    method = explainer.method_
    method.search_ = replace(method.search_, margin=float(30 * top))
    refused = table[explainer.predict(table) == "no"].head(6)
    answer = explainer.explain(refused)
    assert answer.summary() == {"found": 6}


def test_an_unfitted_explainer_says_so(people: pd.DataFrame) -> None:
    with pytest.raises(NotFittedError, match="fit"):
        TabularExplainer(label="y", favourable=1).explain(people)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: d.drop(columns="granted"), ["'granted'"]),
        (lambda d: d.assign(granted="no"), ["'granted'"]),
        (lambda d: d.assign(granted=["maybe", *d.granted[1:]]), ["'granted'", "maybe"]),
        (lambda d: d.assign(granted=[None, *d.granted[1:]]), ["'granted'", "row 0"]),
        (lambda d: d.head(0), ["empty"]),
        (lambda d: d.assign(debt=np.where(d.index == 4, np.inf, d.debt)), ["'debt'", "4", "inf"]),
        (lambda d: d.assign(constant=3), ["'constant'", "3"]),
        (lambda d: d.assign(when=pd.Timestamp("2020-01-01")), ["'when'"]),
        (lambda d: d.assign(name=[f"person {i}" for i in range(len(d))]), ["'name'", "500"]),
        (lambda d: pd.concat([d, d[["job"]]], axis=1), ["'job'", "twice"]),
    ],
)
def test_a_bad_training_table_is_refused_with_column_row_and_value(table: pd.DataFrame, spoil, words) -> None:
    with pytest.raises(InputError) as caught:
        TabularExplainer(label="granted", favourable="yes", **SMALL).fit(spoil(table))
    for word in words:
        assert word in str(caught.value)


def test_a_query_that_lacks_a_column_is_refused_and_order_and_extras_do_not_matter(explainer, people) -> None:
    with pytest.raises(InputError, match="'income'"):
        explainer.explain(people.drop(columns="income"))
    mixed = people[people.columns[::-1]].assign(extra=1, granted="no")
    assert explainer.explain(mixed).arrow.equals(explainer.explain(people).arrow)
    with pytest.raises(InputError, match="empty"):
        explainer.explain(people.head(0))
    with pytest.raises(InputError, match=r"'incme'.*'income'"):
        explainer.explain(people, immutable=("incme",))


def test_predict_names_the_bad_row(explainer: TabularExplainer, people: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"row 2.*'job'.*'pilot'"):
        explainer.predict(people.assign(job=["clerk", "cook", "pilot", *people.job[3:]]))


def test_a_damaged_or_foreign_file_is_refused(explainer: TabularExplainer, tmp_path: Path) -> None:
    path = tmp_path / "m.gpae"
    with pytest.raises(ArtefactError, match="no model file"):
        TabularExplainer.load(path)
    explainer.save(path)
    whole = path.read_bytes()
    for cut in (whole[: len(whole) // 2], b"", b"PK nonsense"):
        path.write_bytes(cut)
        with pytest.raises(ArtefactError, match="not a gpae model, or it is damaged"):
            TabularExplainer.load(path)
    for manifest in (b"[1]", b"not json", b'{"kind": "gpae-model", "format": 1}'):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", manifest)
            archive.writestr("arrays.safetensors", b"garbage")
            archive.comment = hashlib.sha256(manifest).hexdigest().encode()
        with pytest.raises(ArtefactError, match="not a gpae model"):
            TabularExplainer.load(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    path.write_bytes(bytes(flipped))
    with pytest.raises(ArtefactError, match="damaged"):
        TabularExplainer.load(path)


def test_no_flipped_byte_of_a_file_escapes_as_another_error(explainer: TabularExplainer, tmp_path: Path) -> None:
    path = tmp_path / "m.gpae"
    explainer.save(path)
    whole = path.read_bytes()
    # the local header, the directory and the end of the archive; flipped bytes in between fail the checksums
    for at in (*range(60), *range(len(whole) - 260, len(whole))):
        for flip in (0x01, 0xFF):
            changed = bytearray(whole)
            changed[at] ^= flip
            path.write_bytes(bytes(changed))
            with suppress(ArtefactError):  # some bytes, such as a date, do not matter
                TabularExplainer.load(path)


@pytest.mark.parametrize("value", [None, 3, [1], {"a": 1}])
def test_a_sealed_file_with_wrong_values_is_refused(explainer: TabularExplainer, tmp_path: Path, value: Any) -> None:
    path = tmp_path / "m.gpae"
    explainer.save(path)
    saved = read_artefact(path)
    write_artefact(path, State(saved.arrays, saved.values | {"method": value}))
    with pytest.raises(ArtefactError, match="not a model that this version can read"):
        TabularExplainer.load(path)


def test_outputs_are_written_whole_or_not_at_all(explainer, people: pd.DataFrame, tmp_path: Path) -> None:
    answer = explainer.explain(people.head(4))
    answer.to_parquet(tmp_path / "a.parquet")
    answer.to_json(tmp_path / "a.json")
    assert len(json.loads((tmp_path / "a.json").read_text())) == len(answer.table)
    with pytest.raises(InputError, match="must end in"):
        answer.to_parquet(tmp_path / "a.json")
    with pytest.raises(InputError, match="folder"):
        explainer.save(tmp_path)


def test_one_persons_plan_can_be_drawn_and_shown_in_a_notebook(explainer, people: pd.DataFrame) -> None:
    answer = explainer.explain(people)
    found = int(answer.table.row[answer.table.found].iloc[0])
    text = " ".join(t.get_text() for t in answer.plot(row=found).findobj(lambda a: hasattr(a, "get_text")))
    assert answer.changes[answer.changes.row == found].feature.iloc[0] in text
    already = int(answer.table.row[answer.table.status == "already_favourable"].iloc[0])
    with pytest.raises(InputError, match="already says 'yes'"):
        answer.plot(row=already)
    assert answer._repr_html_().count("<tr>") == len(answer.changes) + 1


def test_two_columns_one_row_and_a_one_dimensional_latent_space_work() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(200), "b": rng.random(200)})
    frame["y"] = (frame.a > 0.5).astype(int)
    explainer = TabularExplainer(label="y", favourable=1, **(SMALL | {"latent_dim": 1})).fit(frame)
    answer = explainer.explain(frame[frame.y == 0].head(1))
    assert answer.summary() == {"found": 1}


@pytest.mark.parametrize("scaling", ["robust", "quantile"])
def test_the_other_scalings_answer_too(table: pd.DataFrame, people: pd.DataFrame, scaling) -> None:
    explainer = TabularExplainer(label="granted", favourable="yes", scaling=scaling, beta=0.1, **SMALL).fit(table)
    answer = explainer.explain(people)
    assert set(answer.summary()) == {"found", "already_favourable"}
    plans = answer.table[answer.table.found]
    assert (explainer.predict_proba(plans)[:, 1] > 0.5).all()


def test_the_papers_solver_answers_as_well(table: pd.DataFrame, people: pd.DataFrame) -> None:
    explainer = TabularExplainer(label="granted", favourable="yes", solver="reference", beta=0.1, **SMALL).fit(table)
    answer = explainer.explain(people.head(6))
    assert set(answer.summary()) <= {"found", "already_favourable"}


def test_a_classifier_without_a_density_leaves_plausibility_open(table: pd.DataFrame, people, tmp_path: Path) -> None:
    explainer = TabularExplainer(label="granted", favourable="yes", method="logistic", immutable=("age",)).fit(table)
    answer = explainer.explain(people)
    plans = answer.table[answer.table.found]
    assert len(plans)
    assert plans[["log_density", "plausibility"]].isna().all(axis=None)
    assert (plans.probability > 0.5).all()
    assert answer.arrow["plausibility"].null_count == len(answer.table)
    text = " ".join(
        t.get_text() for t in answer.plot(row=int(plans.row.iloc[0])).findobj(lambda a: hasattr(a, "get_text"))
    )
    assert "plausible" not in text
    explainer.save(tmp_path / "m.gpae")
    assert TabularExplainer.load(tmp_path / "m.gpae").explain(people).arrow.equals(answer.arrow)


def test_a_neighbour_who_needs_a_wider_column_does_not_change_my_value() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(300), "z": rng.normal(size=300)}).astype(np.float32)
    frame["y"] = (frame.x + 0.1 * frame.z > 0.6).astype(int)
    explainer = TabularExplainer(label="y", favourable=1, **SMALL).fit(frame)
    people = pd.DataFrame({"x": [0.25, 1.1], "z": [0.25, -2.3]})
    together = explainer.explain(people, immutable=("z",)).table
    alone = explainer.explain(people.head(1), immutable=("z",)).table
    assert float(together.x[0]) == float(alone.x[0])
    assert together.probability[0] == alone.probability[0]


def test_weights_of_classes_are_given_by_label_and_survive_the_file(table: pd.DataFrame, tmp_path: Path) -> None:
    options: dict[str, Any] = {"label": "granted", "favourable": "yes", "beta": 0.1} | SMALL
    plain = TabularExplainer(**options).fit(table)
    eager = TabularExplainer(**options, class_weight={"yes": 10.0, "no": 1.0}).fit(table)
    assert (eager.predict(table) == "yes").sum() > (plain.predict(table) == "yes").sum()
    eager.save(tmp_path / "m.gpae")
    again = TabularExplainer.load(tmp_path / "m.gpae").fit(table)
    np.testing.assert_array_equal(again.predict_proba(table), eager.predict_proba(table))
    with pytest.raises(InputError, match=r"class_weight=.* must give each of the labels 'no', 'yes' a weight"):
        TabularExplainer(**options, class_weight={"ja": 2.0, "no": 1.0}).fit(table)


def test_arrays_and_plain_values_are_taken_where_lists_and_schemas_are(table: pd.DataFrame, tmp_path: Path) -> None:
    schema = Schema.infer(table, label="granted", favourable="yes").to_dict()
    options: dict[str, Any] = {"label": "granted", "favourable": "yes", "schema": schema, "immutable": None} | SMALL
    explainer = TabularExplainer(**options, beta_grid=np.array([0.1, 0.5])).fit(table)
    explainer.save(tmp_path / "m.gpae")
    assert TabularExplainer.load(tmp_path / "m.gpae").method_.beta_ in (0.1, 0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"prefix": 3}, "prefix=3 must be text"), ({"method": 3}, "method=3 must be text")],
)
def test_options_of_a_wrong_type_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TabularExplainer(label="granted", favourable="yes", **options)


@pytest.mark.parametrize("seed", [-1, "a", 2**80])
def test_a_seed_that_is_none_is_refused_when_explaining_too(explainer: TabularExplainer, seed: Any) -> None:
    with pytest.raises(InputError, match="must be a whole number from 0"):
        explainer.explain(loans(3), seed=seed)
