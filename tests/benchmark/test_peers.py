"""The comparison with peers: one model for all, figures by hand, workers that can be trusted, nothing run twice."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.neural_network import MLPClassifier

from gpae.benchmark.peers import environment
from gpae.benchmark.peers.case import Case
from gpae.benchmark.peers.conditions import DEFAULT, SPARSE, conditions
from gpae.benchmark.peers.environment import CFRL, DICE, NICE, EnvironmentMissingError, default_folder
from gpae.benchmark.peers.measures import Measures, Scores
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.benchmark.peers.worker import WorkerError, working
from gpae.benchmark.studies import peers as study
from gpae.benchmark.studies.peers import METHODS, Crew, Terms, compare, whole_crew
from gpae.cli import main
from gpae.errors import InputError
from tests.benchmark.jobs import Jobs

PEERS = Path(study.__file__).parents[1] / "peers"


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case.of(tmp_path_factory.mktemp("case") / "jobs", Jobs(), 0)  # type: ignore[arg-type]


# one model for all


def test_the_network_rebuilt_from_arrays_says_what_scikit_learn_says(case: Case) -> None:
    inputs, labels = case.model.columns.inputs(case.train), case.train["pay"].to_numpy()
    network = MLPClassifier(hidden_layer_sizes=(32, 32), early_stopping=True, random_state=0).fit(inputs, labels)
    np.testing.assert_allclose(case.model.predict_proba(case.train), network.predict_proba(inputs), atol=1e-12)


def test_levels_may_be_text_or_categories(case: Case) -> None:
    text = case.train.assign(job=case.train["job"].astype(str), sex=case.train["sex"].astype(str))
    np.testing.assert_array_equal(case.model.columns.inputs(text), case.model.columns.inputs(case.train))
    strange = text.assign(job="astronaut")
    assert (case.model.columns.codes(strange)[:, 0] == -1).all()
    assert not case.model.columns.inputs(strange)[:, 2:6].any()


def test_the_people_asked_about_are_refused_and_held_out(case: Case) -> None:
    assert (case.model.predict(case.queries) == 0).all()
    assert 20 < len(case.queries) < 200
    assert case.model.meta["levels"]["job"] == ["?", "clerk", "cook", "owner"]
    assert set(case.queries.columns) == set(Jobs.features)
    with pytest.raises(InputError, match="ask for fewer"):
        case.first(500)


def test_the_model_is_trained_once(case: Case) -> None:
    before = (case.folder / "model.npz").stat().st_mtime_ns
    again = Case.of(case.folder, Jobs(), 0)  # type: ignore[arg-type]
    assert (case.folder / "model.npz").stat().st_mtime_ns == before
    pd.testing.assert_frame_equal(again.queries, case.queries)


# figures by hand


def by_hand() -> Case:
    """Favourable is who is 50 or more; the standard deviation of age is 10, of hours 5."""
    meta = {
        "numbers": ["age", "hours"],
        "levels": {"job": ["a", "b"], "sex": ["f", "m"]},
        "label": "pay",
        "kind": "perceptron",
    }
    arrays = {
        "mean": np.array([50.0, 40.0]),
        "std": np.array([10.0, 5.0]),
        "weight0": np.array([[1.0, -1.0], *[[0.0, 0.0]] * 5]),
        "bias0": np.zeros(2),
        "weight1": np.eye(2),
        "bias1": np.zeros(2),
        "weight2": np.array([[1.0], [-1.0]]),
        "bias2": np.array([0.01]),
    }
    train = pd.DataFrame(
        {"age": [20, 30, 50, 60, 70, 80], "job": list("abaaaa"), "sex": list("fmffff"), "hours": [40] * 5 + [50]}
    ).assign(pay=[0, 1, 1, 1, 1, 0])
    model = PlainModel(meta | {"kind": "perceptron", "immutable": ["sex"]}, arrays)
    queries = pd.DataFrame({"age": [40, 30, 20, 10], "job": list("abab"), "sex": list("fmfm"), "hours": [40] * 4})
    return Case(Path(), model, train, queries)


def test_the_measures_of_a_worked_example() -> None:
    case = by_hand()
    answers: list[dict[str, Any] | None] = [
        {"age": 50.0, "job": "a", "sex": "f", "hours": 40.0},  # 10 years more
        {"age": 49.6, "job": "a", "sex": "f", "hours": 90},  # rounded and clipped: 50, 50; sex changes
        {"age": 49.4, "job": "a", "sex": "f", "hours": 40},  # rounded: 49, not favourable
        None,
    ]
    figures = Measures.of(case).scores(case.queries, answers).quality()
    assert (figures.rows, figures.answered, figures.valid) == (4, 3, 0.5)
    # squared: 1, and 4 + 4
    assert figures.l2 == pytest.approx(4.5)
    assert figures.l2_median == pytest.approx(4.5)
    assert figures.changes == pytest.approx((1 + 4) / 2)
    # favoured are the ages of 50 to 80, four rows: 0, 1, 2 and the one with 50 hours
    first = (0 + 1 + 2 + np.hypot(3, 2)) / 4
    second = (2 + np.hypot(1, 2) + np.hypot(2, 2) + 3) / 4
    assert figures.neighbours == pytest.approx((first + second) / 2)
    assert figures.neighbours_by_label != pytest.approx(figures.neighbours)
    assert figures.whole == pytest.approx(1 / 3)
    assert figures.in_range == pytest.approx(2 / 3)
    assert figures.immutables_kept == pytest.approx(2 / 3)


def test_a_value_of_ones_own_is_in_range() -> None:
    case = by_hand()
    own = case.queries.iloc[[3]]  # younger than anybody in the training rows
    answer = {"age": 10, "job": "b", "sex": "m", "hours": 40}
    figures = Measures.of(case).scores(own, [answer]).quality()
    assert figures.in_range == 1.0
    assert figures.valid == 0.0


def test_an_answer_that_is_no_row_is_not_valid() -> None:
    case = by_hand()
    answers: list[dict[str, Any] | None] = [
        {"age": 60, "job": "astronaut", "sex": "f", "hours": 40},
        {"age": "sixty", "job": "a", "sex": "m", "hours": 40},
    ]
    figures = Measures.of(case).scores(case.queries.iloc[:2], answers).quality()
    assert figures.valid == 0.0
    assert np.isnan(figures.l2)


def test_without_any_answer_there_are_figures_all_the_same() -> None:
    case = by_hand()
    figures = Measures.of(case).scores(case.queries, [None] * 4).quality()
    assert (figures.answered, figures.valid) == (0, 0.0)
    assert np.isnan(figures.changes)


def test_states_are_values_and_stretch_no_range() -> None:
    case = by_hand()
    meta = case.model.meta | {"codes": {"hours": [-9, -7]}}
    train = case.train.assign(hours=[40, 40, 40, 40, -9, 50])
    case = replace(case, model=PlainModel(meta, case.model.arrays), train=train)
    own = case.queries.iloc[[0] * 6].assign(hours=[-9, 40, 40, 40, 40, -9])
    given = [-7, -7, -6, -1, -8.9, 0]
    answers = [{"age": 60, "job": "a", "sex": "f", "hours": hours} for hours in given]
    measures = Measures.of(case)
    scores = measures.scores(own, answers)
    # a code, a code, between two codes, between a code and the range, next to a code, in the range
    assert scores.in_range.tolist() == [True, True, False, False, False, True]
    assert scores.whole.tolist() == [True, True, True, True, False, True]
    settled = [-7, -7, -7, 0, -9, 0]
    ways = [((new - old) / 5) ** 2 for new, old in zip(settled, own["hours"], strict=True)]
    assert scores.l2.tolist() == pytest.approx([4.0 + way for way in ways])
    assert scores.of(scores.in_range).quality().violations == 0.0
    assert scores.quality().violations == pytest.approx(0.5)


def test_an_answer_may_be_valid_only_as_given_or_only_rounded() -> None:
    case = by_hand()
    answers = [{"age": age, "job": "a", "sex": "f", "hours": 40} for age in (49.95, 49.6, 50.2)]
    scores = Measures.of(case).scores(case.queries.iloc[[0] * 3], answers)
    # favourable is age / 10 - 5 + 0.01 > 0, that is, from 49.9 on
    assert scores.valid_as_given.tolist() == [True, False, True]
    assert scores.valid.tolist() == [True, True, True]


def some_scores(**more: Any) -> Scores:
    """Two people, to both of whom a method answered soundly."""
    yes, ones = np.ones(2, dtype=np.bool_), np.ones(2)
    flags = dict.fromkeys(("answered", "valid", "valid_as_given", "whole", "in_range", "immutables_kept"), yes)
    values = dict.fromkeys(("l2", "changes", "neighbours", "neighbours_by_label"), ones)
    return Scores(**(flags | values | more))


def test_the_conditions_of_a_worked_example() -> None:
    scores = {method.name: some_scores() for method in METHODS}
    # the peer leaves the second, who is far off, alone: nobody is to be compared there
    one = {"valid": np.array([True, False]), "answered": np.array([True, False])}
    scores["DiCE genetic"] = some_scores(l2=np.array([2.0, np.nan]), neighbours=np.array([1.0, np.nan]), **one)
    scores[DEFAULT] = some_scores(l2=np.array([1.2, 9.0]), neighbours=np.array([1.2, 0.1]))
    scores[SPARSE] = some_scores(changes=np.array([1.0, 1.5]), valid=np.array([True, False]))
    rates = {method.name: np.array([10.0, 20.0, 30.0]) for method in METHODS}
    rates[DEFAULT] = rates[DEFAULT] * np.array([50.0, 100.0, 200.0])  # within a round: 50, 100, 200 times
    found = {one.condition: one for one in conditions(scores, rates)}
    assert found["gpae plausible: L2 at most 0.6 of DiCE genetic's"].figure == "1.20 / 2.00 = 0.60 (1 rows)"
    holds = {words: one.holds for words, one in found.items()}
    assert holds["gpae plausible: L2 at most 0.6 of DiCE genetic's"]
    assert not holds["gpae plausible: 5-NN at most 1.1 of DiCE genetic's"]
    assert holds["gpae sparse: changes at most NICE sparsity's + 0.3"]
    assert not holds["gpae sparse: L2 smaller than NICE sparsity's"]
    assert holds["gpae plausible: valid at least 0.995"]
    assert not holds["gpae sparse: valid at least 0.995"]
    assert holds["gpae sparse: integers whole"]
    assert holds["gpae plausible: at least 100 x DiCE genetic's rows/s"]
    assert not holds["gpae sparse: at least 10 x NICE sparsity's rows/s"]


def test_where_a_peer_has_no_valid_answer_nothing_is_claimed() -> None:
    scores = {method.name: some_scores() for method in METHODS}
    scores["DiCE genetic"] = some_scores(valid=np.zeros(2, dtype=np.bool_))
    rates = {method.name: np.ones(2) for method in METHODS}
    found = {one.condition: one.holds for one in conditions(scores, rates)}
    assert not found["gpae plausible: L2 at most 0.6 of DiCE genetic's"]


# workers

FAKE = f"""
import sys
sys.path.insert(0, {str(PEERS)!r})
from pathlib import Path
from plain.model import PlainModel
from plain.serving import serve

folder = Path(sys.argv[1])
(folder / "started.txt").open("a").write("x")

def answer(method, rows):
    print("what a library prints is no answer")
    if method == "fall":
        raise RuntimeError("I fell over")
    answers = rows.astype(object).assign(age=79, hours=59).to_dict("records")
    if method == "random":
        answers[0] = None
    return answers, 0.001 * len(rows)

serve(PlainModel.read(folder).columns.table(folder / "queries.csv"), answer)
"""


@pytest.fixture
def crew(tmp_path: Path) -> Callable[[Path], Crew]:
    script = tmp_path / "fake_worker.py"
    script.write_text(FAKE)
    return lambda folder: Crew({n: (sys.executable, str(script), str(folder)) for n in ("dice", "nice", "gpae")})


def test_a_worker_answers_and_what_it_prints_goes_to_its_log(
    case: Case, crew: Callable[[Path], Crew], tmp_path: Path
) -> None:
    with working("dice", crew(case.folder).commands["dice"], tmp_path / "dice.log", 1) as worker:
        reply = worker.answer("genetic", [2, 0])
    assert [answer["job"] for answer in reply.answers if answer] == case.queries["job"].iloc[[2, 0]].tolist()
    assert reply.answers[0] is not None
    assert reply.answers[0]["age"] == 79
    assert reply.seconds == pytest.approx(0.002)
    assert "no answer" in (tmp_path / "dice.log").read_text()
    assert worker.process.poll() is not None


def test_a_worker_begins_no_call_after_the_limit_and_tells_no_more_than_asked(
    case: Case, crew: Callable[[Path], Crew], tmp_path: Path
) -> None:
    with working("dice", crew(case.folder).commands["dice"], tmp_path / "dice.log", 1) as worker:
        cut = worker.answer("genetic", range(10), batch=2, limit=0.003)  # a row takes a thousandth
        short = worker.answer("random", range(6), batch=3, tell=2)  # nothing for the first of every call
    assert (cut.asked, cut.answered, len(cut.answers)) == (4, 4, 4)
    assert cut.seconds == pytest.approx(0.004)
    assert (short.asked, short.answered, len(short.answers)) == (6, 4, 2)
    assert short.answers[0] is None


def test_a_worker_that_falls_is_heard(case: Case, crew: Callable[[Path], Crew], tmp_path: Path) -> None:
    command = crew(case.folder).commands["dice"]
    with (
        working("dice", command, tmp_path / "dice.log", 1) as worker,
        pytest.raises(WorkerError, match=r"(?s)'dice' ended with exit code 1.*I fell over"),
    ):
        worker.answer("fall", [0])


def test_a_worker_sees_neither_our_modules_nor_more_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    tell = "import json, os; print(json.dumps(dict(os.environ)), flush=True); input()"
    from gpae.benchmark.peers import worker

    said: list[dict[str, Any]] = []
    heard = worker.Worker.heard
    monkeypatch.setattr(worker.Worker, "heard", lambda self: said.append(heard(self)) or said[-1])
    with working("dice", (sys.executable, "-c", tell), tmp_path / "log", 2):
        pass
    assert "PYTHONPATH" not in said[0]
    assert said[0]["OMP_NUM_THREADS"] == said[0]["OPENBLAS_NUM_THREADS"] == "2"


# the study


def test_the_study_writes_a_line_a_method_and_runs_no_round_twice(tmp_path: Path, crew: Callable[[Path], Crew]) -> None:
    asked: list[Path] = []

    def watched(folder: Path) -> Crew:
        asked.append(folder)
        return replace(crew(folder), versions={"dice": {"dice-ml": "0.12"}})

    def run() -> study.Comparison:
        return compare(tmp_path / "peers", Jobs(), Terms(rows=10, rounds=3), watched)  # type: ignore[arg-type]

    found = run()
    table = pd.read_csv(tmp_path / "peers" / "peers.csv").set_index("method")
    assert table.index.tolist() == [method.name for method in METHODS]
    assert table.loc["DiCE random", "answered"] == 10 - 3  # nothing for the first of every block
    assert table.loc["DiCE genetic", "answered"] == 10
    assert table.loc["DiCE genetic", "valid"] == 1.0
    assert table.loc["DiCE genetic", "timed_rows"] == 10
    assert table.loc["gpae near", "timed_rows"] == 3 * len(Case.of(asked[0], Jobs(), 0).queries)  # type: ignore[arg-type]
    assert table["rows_per_second"].tolist() == pytest.approx([1000.0] * len(METHODS))
    assert len(pd.read_csv(tmp_path / "peers" / "conditions.csv")) == len(found.conditions)
    assert found.about["peers"] == {"dice": {"dice-ml": "0.12"}}
    assert len(asked) == 1

    pd.testing.assert_frame_equal(run().figures, found.figures)
    assert len(asked) == 1
    (tmp_path / "peers" / "cells" / Terms(rows=10, rounds=3).file(1)).unlink()
    pd.testing.assert_frame_equal(run().figures, found.figures)
    assert len(asked) == 2


def test_a_round_needs_a_row() -> None:
    with pytest.raises(InputError, match="every round needs a row"):
        Terms(rows=2, rounds=3)
    blocks = [Terms(rows=10, rounds=3).block(number) for number in range(3)]
    assert [row for block in blocks for row in block] == list(range(10))


def test_the_command_prints_figures_and_conditions(
    tmp_path: Path, crew: Callable[[Path], Crew], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "whole_crew", lambda folder, environments: crew(folder))
    monkeypatch.setattr("gpae.datasets.load", lambda name: Jobs())
    line = ["bench", "peers", "--rows", "4", "--rounds", "2", "-o", str(tmp_path)]
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as end:
            main([*line, *more])
        assert end.value.code == 0
    printed, _, as_json = capsys.readouterr().out.partition("{")
    assert "DiCE genetic" in printed
    assert "5-NN at most 1.1 of DiCE genetic's" in printed
    told = json.loads("{" + as_json)
    assert [one["method"] for one in told["methods"]] == [method.name for method in METHODS]
    assert {"condition", "figure", "holds"} == set(told["conditions"][0])
    run = json.loads((tmp_path / "peers" / "run.json").read_text())
    assert (run["rows"], run["rounds"], run["threads"], run["seed"]) == (4, 2, 1, 0)
    assert run["model"]["refused"] > 4


# the peers' environments


def python_in(place: Path) -> Path:
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def test_an_environment_that_is_there_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.PeerEnvironment, "installed", lambda self, python: dict(self.versions))
    monkeypatch.setattr(environment.PeerEnvironment, "_run", lambda *_: pytest.fail("nothing is to be installed"))
    assert DICE.ready(tmp_path) == python_in(tmp_path / "dice")


def test_an_environment_that_is_not_there_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        if "-I" in command:  # which versions there are
            there = NICE.versions if len(commands) == 2 else {"nicex": "0.1"}
            return subprocess.CompletedProcess(command, 0, json.dumps({"python": "3.11.9", **there}), "")
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environment.subprocess, "run", run)
    monkeypatch.setattr(environment, "_base_python", lambda: "python3.11")
    python = NICE.ready(tmp_path)
    assert commands[0] == ["python3.11", "-m", "venv", str(tmp_path / "nice")]
    assert commands[1][:4] == [str(python), "-m", "pip", "install"]
    assert "nicex==0.2.3" in commands[1]
    assert "scipy==1.11.4" in commands[1]
    assert NICE.installed(python)["python"] == "3.11.9"


def test_a_build_for_the_processor_alone_is_of_the_version_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for torch, fits in (("2.13.0+cpu", True), ("2.13.0", True), ("2.13.1+cpu", False), ("", False)):
        there = {**CFRL.versions, "torch": torch}
        monkeypatch.setattr(environment.PeerEnvironment, "installed", lambda self, python, there=there: there)
        assert CFRL.fits(tmp_path) == fits
    monkeypatch.setattr(environment.PeerEnvironment, "installed", lambda self, python: {})
    assert not CFRL.fits(tmp_path)


def test_without_a_network_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        if "-I" in command:
            raise FileNotFoundError(command[0])
        return subprocess.CompletedProcess(command, 1, "", "ERROR: no matching distribution found")

    monkeypatch.setattr(environment.subprocess, "run", run)
    monkeypatch.setattr(environment, "_base_python", lambda: "python3.11")
    with pytest.raises(EnvironmentMissingError, match=r"(?s)DiCE 0.12 .*no matching.*dice-ml==0.12.*--environments"):
        DICE.ready(tmp_path)


def test_without_the_right_python_the_message_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_PYTHON", (3, 2))
    with pytest.raises(EnvironmentMissingError, match=r"Python 3.2, and python3.2 is not on the path"):
        environment._base_python()


# with the peers themselves

ENVIRONMENTS = Path(os.environ.get("GPAE_PEERS", default_folder()))


@pytest.mark.skipif(
    not all(peer.fits(peer.python(ENVIRONMENTS)) for peer in (DICE, NICE)),
    reason=f"the peers have no environments in {ENVIRONMENTS}; `gpae bench peers` makes them, GPAE_PEERS names others",
)
def test_the_peers_answer(tmp_path: Path) -> None:
    found = compare(
        tmp_path / "peers",
        Jobs(),  # type: ignore[arg-type]
        Terms(rows=6, rounds=2),
        lambda folder: whole_crew(folder, ENVIRONMENTS),
    )
    table = found.figures.set_index("method")
    assert (table["answered"] >= 4).all()
    assert (table["valid"] >= 4 / 6).all()
    ours = table.loc[[method.name for method in METHODS if method.worker == "gpae"]]
    assert (ours[["valid", "whole", "in_range", "immutables_kept"]] == 1.0).all(axis=None)
    assert found.about["peers"]["dice"]["dice-ml"] == "0.12"
    assert found.about["peers"]["nice"]["nicex"] == "0.2.3"
