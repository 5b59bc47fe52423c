"""The study of speed: who is fastest at which batch, what is judged, nothing run twice."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpae.benchmark.peers.case import Case, perceptron
from gpae.benchmark.peers.conditions import Condition
from gpae.benchmark.peers.crew import OURS, Crew, crew_of
from gpae.benchmark.peers.environment import CFNOW, DICE, NICE, RELAX, PeerEnvironment, default_folder
from gpae.benchmark.peers.measures import Measures, Scores
from gpae.benchmark.peers.plain import model as plain
from gpae.benchmark.peers.worker import working
from gpae.benchmark.speed import peers as part
from gpae.benchmark.speed.contest import Contest
from gpae.benchmark.speed.part import Outcome, Terms
from gpae.benchmark.speed.peers import CASES, FURTHER, LEARNERS, METHODS, SpeedCase, measure_peers
from gpae.benchmark.speed.standings import Standing, standing_conditions
from gpae.benchmark.studies import speed as study
from gpae.cli import main
from gpae.errors import InputError
from tests.benchmark.jobs import Jobs, Records
from tests.benchmark.test_plain_models import small_gpae

PEERS = Path(plain.__file__).parents[1]

FAKE = f"""
import sys
sys.path.insert(0, {str(PEERS)!r})
from pathlib import Path
from plain.model import PlainModel
from plain.serving import serve

folder, name = Path(sys.argv[1]), sys.argv[2]
asked = (folder / f"{{name}}.txt").open("a")

def answer(method, rows):
    asked.write(f"{{method}} {{len(rows)}}\\n")
    asked.flush()
    answers = rows.astype(object).assign(age=79, hours=59).to_dict("records")
    if name == "gpae":  # a call takes a second, and beyond a thousand rows it is slow
        return answers, 1.0 if len(rows) <= 1000 else 100.0
    if name == "relax":  # it would take longer than the limit for a thousand rows
        return answers, 0.1 * len(rows)
    return answers, 2.0 * len(rows)

serve(PlainModel.read(folder).columns.table(folder / "queries.csv"), answer)
"""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who only pretends to work leaves no threads that spin."""
    monkeypatch.setattr("gpae.benchmark.speed.contest._PAUSE", 0.0)


@pytest.fixture
def crew(tmp_path: Path) -> Callable[..., Crew]:
    script = tmp_path / "fake_worker.py"
    script.write_text(FAKE)
    names = ("dice", "nice", "cfnow", "relax", "cfrl", OURS)
    return lambda folder, *_: Crew(
        {name: (sys.executable, str(script), str(folder), name) for name in names}, {"dice": {"dice-ml": "0.12"}}
    )


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case.of(tmp_path_factory.mktemp("case") / "jobs", Jobs(), 0)  # type: ignore[arg-type]


TERMS = Terms(rows=12, rounds=3, threads=1, limit=30.0)


def test_everybody_meets_at_their_best_batch_and_within_the_limit(
    case: Case, crew: Callable[..., Crew], tmp_path: Path
) -> None:
    contest = Contest("jobs", case, METHODS, replace(TERMS, limit=5.0), tmp_path / "cells")
    rounds = contest.rounds(crew)
    first = rounds[0]["methods"]
    assert [len(done["methods"]) for done in rounds] == [len(METHODS)] * 3
    assert {name: one["batch"] for name, one in first.items()} == {
        "DiCE random": 1,
        "DiCE genetic": 1,
        "NICE sparsity": 200,
        "CFNOW greedy": 1,
        "ReLax Wachter": 200,
        "ReLax spheres": 200,
        "ReLax ProtoCF": 200,
        "gpae": 1000,
    }
    # two seconds a row, five seconds a round: none is begun after the third
    assert (first["DiCE random"]["rows"], first["DiCE random"]["timed_rows"]) == ([0, 1, 2], 3)
    assert (rounds[1]["methods"]["gpae"]["rows"], first["gpae"]["timed_rows"]) == ([4, 5, 6, 7], 1000)
    said = (case.folder / "relax.txt").read_text()
    assert "wachter 1000" not in said  # a hundred seconds
    # a first answer that is not timed, in each of three rounds: once ready, then one row before three
    assert (case.folder / "dice.txt").read_text().split("\n").count("random 1") == 1 + 3 * (1 + 3)


def test_no_round_is_run_twice(case: Case, crew: Callable[..., Crew], tmp_path: Path) -> None:
    calls: list[Path] = []

    def watched(folder: Path) -> Crew:
        calls.append(folder)
        return crew(folder)

    contest = Contest("jobs", case, METHODS, TERMS, tmp_path / "cells")
    rounds = contest.rounds(watched)
    assert contest.rounds(watched) == rounds
    assert len(calls) == 1
    next(contest.cells.glob("*round2of3.json")).unlink()
    before = (case.folder / "gpae.txt").read_text().count("own 10000")
    again = contest.rounds(watched)
    assert [done["methods"] for done in again] == [done["methods"] for done in rounds]
    assert (case.folder / "gpae.txt").read_text().count("own 10000") == before  # the best batch is known
    assert len(calls) == 2


def test_a_round_needs_a_row() -> None:
    with pytest.raises(InputError, match="every round needs a row"):
        Terms(rows=2, rounds=3)


# what is judged


def standing(rates: list[float], valid: list[bool], l2: list[float], **more: Any) -> Standing:
    n = len(valid)
    yes, good = np.ones(n, dtype=np.bool_), np.array(valid)
    flags = dict.fromkeys(("answered", "valid_as_given", "whole", "in_range", "immutables_kept"), yes)
    values = dict.fromkeys(("changes", "neighbours", "neighbours_by_label"), np.ones(n))
    scores = Scores(**(flags | values | {"valid": good, "l2": np.where(good, l2, np.nan)}))
    return Standing(scores, more.get("asked", yes), np.array(rates), more.get("ours", False))


def test_the_conditions_of_a_worked_example() -> None:
    two = np.array([True, True, False])
    standings = {
        "DiCE random": standing([5.0, 4.0, 6.0], [True] * 3, [9.0] * 3),
        "DiCE genetic": standing([1.0, 1.0, 1.0], [True] * 3, [9.0] * 3),
        "NICE sparsity": standing([100.0, 100.0, 50.0], [True, True, False], [1.0, 3.0, 0.0], asked=two),
        "ReLax Wachter": standing([900.0] * 3, [True, True, False], [0.1] * 3),  # fast, but a third is not valid
        "gpae": standing([5000.0, 4000.0, 6000.0], [True] * 3, [1.0, 3.5, 50.0], ours=True),
        "gpae on arrays": standing([9000.0] * 3, [True] * 3, [1.0] * 3, ours=True),
    }
    found = {one.condition: one for one in standing_conditions("adult, GPAE", standings, raced=True)}
    fastest = "adult, GPAE: ours at least 50 x the fastest peer with 0.99 valid"
    whole, arrays = found[f"{fastest}, whole calls"], found[f"{fastest}, arrays to arrays, as it is timed"]
    assert (whole.figure, whole.holds) == ("50 (40–120), NICE sparsity", True)
    assert (arrays.figure, arrays.holds) == ("90 (90–180), NICE sparsity", True)
    nearer = found["adult, GPAE: ours at most as far (L2) as that peer"]
    assert (nearer.figure, nearer.holds) == ("2.25 against 2.00 (2 rows)", False)
    assert found["adult, GPAE: ours at least 1,000 x DiCE random"].holds
    assert found["adult, GPAE: ours at least 1,000 x DiCE genetic"].figure == "5e+03 (4e+03–6e+03)"
    assert found["adult, GPAE: ours valid after rounding, all"].holds
    slow = standings | {"gpae": standing([4900.0] * 3, [True, True, False], [1.0] * 3, ours=True)}
    held = {one.condition: one.holds for one in standing_conditions("x", slow, raced=True)}
    assert not held["x: ours at least 1,000 x DiCE random"]
    assert not held["x: ours at least 50 x the fastest peer with 0.99 valid, whole calls"]
    assert held["x: ours at least 50 x the fastest peer with 0.99 valid, arrays to arrays, as it is timed"]
    assert not held["x: ours valid after rounding, all"]
    assert held["x: ours violate nothing"]
    assert len(standing_conditions("x", slow, raced=False)) == 2


def test_where_no_peer_is_sound_nothing_is_claimed() -> None:
    none = [False] * 2
    standings = {name: standing([1.0], none, [0.0] * 2) for name in ("DiCE random", "DiCE genetic")}
    standings["gpae"] = standing([1e6], [True] * 2, [0.0] * 2, ours=True)
    found = {one.condition: one for one in standing_conditions("x", standings, raced=True)}
    assert not found["x: ours at least 50 x the fastest peer with 0.99 valid, whole calls"].holds
    assert not found["x: ours at least 50 x the fastest peer with 0.99 valid, arrays to arrays, as it is timed"].holds
    assert found["x: ours at most as far (L2) as that peer"].figure == "no such peer"


def test_who_has_learnt_before_is_met_at_its_own_speed() -> None:
    standings = {
        "CFRL": standing([1000.0, 2000.0, 4000.0], [True, True, False], [4.0, 6.0, 0.0]),
        "CFRL on arrays": standing([9000.0] * 3, [True, True, False], [4.0, 6.0, 0.0]),
        "gpae": standing([3000.0] * 3, [True] * 3, [1.0, 2.0, 99.0], ours=True),
    }
    found = {one.condition: one for one in standing_conditions("adult, MLP", standings, raced=False)}
    faster, faster_on_arrays = (
        found["adult, MLP: ours faster than CFRL"],
        found["adult, MLP: ours faster than CFRL on arrays"],
    )
    nearer = found["adult, MLP: ours at most as far (L2) as CFRL"]
    assert (faster.figure, faster.holds) == ("1.5 (0.75–3) of its answers a second", True)
    assert (faster_on_arrays.figure, faster_on_arrays.holds) == ("0.333 (0.333–0.333) of its answers a second", False)
    assert (nearer.figure, nearer.holds) == ("1.50 against 5.00 (2 rows)", True)
    assert len(found) == 5

    turned = standings | {
        "gpae": replace(standings["CFRL"], ours=True),
        "CFRL": replace(standings["gpae"], ours=False),
        "CFRL on arrays": replace(standings["gpae"], ours=False),
    }
    held = {one.condition: one.holds for one in standing_conditions("x", turned, raced=False)}
    assert not held["x: ours faster than CFRL"]
    assert not held["x: ours faster than CFRL on arrays"]
    assert not held["x: ours at most as far (L2) as CFRL"]
    even = {
        one.condition: one.holds
        for one in standing_conditions("x", standings | {"CFRL": standings["gpae"]}, raced=False)
    }
    assert not even["x: ours faster than CFRL"]
    assert even["x: ours at most as far (L2) as CFRL"]


# the part, the study and the command


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, crew: Callable[..., Crew]) -> None:
    """Two cases on small tables, with workers that only pretend."""
    own = SpeedCase("jobs, GPAE", "jobs", small_gpae, own=True)
    given = SpeedCase("records, MLP", "records", perceptron, own=False)
    monkeypatch.setattr(part, "CASES", (own, given))
    monkeypatch.setattr(part, "_whole_crew", crew)
    monkeypatch.setattr(part, "load", lambda name: {"jobs": Jobs, "records": Records}[name]())


@pytest.mark.usefixtures("small")
def test_the_part_writes_a_line_a_case_and_method_and_a_figure(tmp_path: Path) -> None:
    outcome = measure_peers(tmp_path, TERMS)
    table = pd.read_csv(tmp_path / "peers.csv").set_index(["case", "method"])
    assert table.index.tolist() == [
        *(("jobs, GPAE", method.name) for method in METHODS),
        *(("jobs, GPAE", method.name) for method in FURTHER),
        *(("records, MLP", method.name) for method in METHODS),
        *(("records, MLP", method.name) for method in LEARNERS),
    ]
    ours = table.loc[("jobs, GPAE", "gpae")]
    assert (ours["answers_per_second"], ours["slowest"], ours["batch"], ours["timed_rows"]) == (1000, 1000, 1000, 3000)
    assert (ours["rows"], ours["violations"], ours["immutables_kept"]) == (12, 0.0, 1.0)
    assert table.loc[("records, MLP", "CFNOW greedy"), "answers_per_second"] == 0.5
    assert table.loc[("records, MLP", "CFRL"), "timed_rows"] == 3 * 10_000
    assert {one.condition.split(":")[0] for one in outcome.conditions} == {"jobs, GPAE", "records, MLP"}
    assert outcome.about["jobs, GPAE"]["peers"] == {"dice": {"dice-ml": "0.12"}}
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")
    assert "ReLax spheres" in (tmp_path / "peers.svg").read_text()


@pytest.mark.usefixtures("small")
def test_how_long_a_peer_learnt_is_told(tmp_path: Path) -> None:
    told = {"steps": 10_000, "seconds": 350.5}
    folder = tmp_path / "shared" / f"records-mlp-{TERMS.seed}"
    folder.mkdir(parents=True)
    (folder / "cfrl.json").write_text(json.dumps(told))
    about = measure_peers(tmp_path, TERMS).about
    assert about["records, MLP"]["learning"] == {"CFRL": told}
    assert about["jobs, GPAE"]["learning"] == {}


def test_who_learns_for_minutes_is_only_asked_about_a_given_classifier(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PeerEnvironment, "ready", lambda self, folder: folder / self.name)
    monkeypatch.setattr(PeerEnvironment, "installed", lambda self, python: dict(self.versions))
    usual = {"dice", "nice", "cfnow", "relax", OURS}
    crews = {one.name: set(part._whole_crew(tmp_path, one.methods, TERMS).commands) for one in CASES}
    assert crews == {"adult, GPAE": usual, "fico, GPAE": usual, "adult, MLP": usual | {"cfrl"}}
    assert all({method.worker for method in one.methods} == crews[one.name] for one in CASES)


def test_the_conditions_of_other_parts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = pd.DataFrame()
    for name, holds in (("rows", True), ("widths", False), ("rows", False)):
        one = Outcome(nothing, {}, [Condition(f"of {name}", "1", holds)])
        monkeypatch.setattr(study, "PARTS", {name: lambda folder, terms, one=one: one})
        study.run_speed(tmp_path, [name], TERMS)
    kept = pd.read_csv(tmp_path / "conditions.csv")
    assert kept[["part", "condition", "holds"]].to_numpy().tolist() == [
        ["widths", "of widths", False],
        ["rows", "of rows", False],
    ]


@pytest.mark.usefixtures("small")
def test_the_command_prints_figures_and_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = [
        "bench",
        "speed",
        "--parts",
        "peers",
        "--rows",
        "4",
        "--rounds",
        "2",
        "--threads",
        "1",
        "--limit",
        "3",
        "-o",
        str(tmp_path),
    ]
    for more in ([], ["--parts", "peers", "--json"]):
        with pytest.raises(SystemExit) as end:
            main([*line, *more])
        assert end.value.code == 0
    printed, _, as_json = capsys.readouterr().out.partition("{")
    assert "ReLax spheres" in printed
    assert "of 12 hold" in printed
    told = json.loads("{" + as_json)["peers"]
    assert len(told["figures"]) == 2 * len(METHODS) + len(FURTHER) + len(LEARNERS)
    assert len(told["conditions"]) == len(pd.read_csv(tmp_path / "speed" / "conditions.csv"))
    run = json.loads((tmp_path / "speed" / "run.json").read_text())["parts"]["peers"]
    assert (run["rows"], run["rounds"], run["threads"], run["limit"]) == (4, 2, 1, 3.0)


def test_an_unknown_part_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["bench", "speed", "--parts", "colours", "-o", str(tmp_path)])
    assert end.value.code == 2
    assert "peers" in capsys.readouterr().err


# with the contenders themselves

ENVIRONMENTS = Path(os.environ.get("GPAE_PEERS", default_folder()))
CALLS = {"dice": ("random", "genetic"), "nice": ("sparsity",), "cfnow": ("greedy",), "relax": ("wachter", "spheres")}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case.of(tmp_path_factory.mktemp("case") / "records", Records(), 0, small_gpae)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["own", "arrays", "plausible"])
def test_ours_answers_everybody_soundly(records: Case, tmp_path: Path, call: str) -> None:
    ours = crew_of((), records.folder, tmp_path)
    with ours.at_work(tmp_path, 1) as workers:
        reply = workers[OURS].answer(call, range(20), batch=10)
    quality = Measures.of(records).scores(records.first(20), reply.answers).quality()
    assert (reply.answered, quality.valid, quality.valid_as_given, quality.violations) == (20, 1.0, 1.0, 0.0)


@pytest.mark.parametrize("peer", [DICE, NICE, CFNOW, RELAX], ids=lambda peer: peer.name)
def test_a_peer_answers_with_rows_of_the_table(records: Case, tmp_path: Path, peer: PeerEnvironment) -> None:
    python = peer.python(ENVIRONMENTS)
    if not peer.fits(python):
        pytest.skip(f"{peer.title} is not in {ENVIRONMENTS}; `gpae bench speed` puts it there, GPAE_PEERS names others")
    command = crew_of((peer,), records.folder, ENVIRONMENTS).commands[peer.name]
    rows = 1 if peer is CFNOW else 4  # it may take minutes for one
    people, measures = records.first(rows), Measures.of(records)
    with working(peer.name, command, tmp_path / "log", 1) as worker:
        for call in CALLS[peer.name]:
            answers = worker.answer(call, range(rows)).answers
            quality = measures.scores(people, answers).quality()
            assert quality.answered >= 0.75 * rows
            assert quality.valid_as_given >= 0.5
            assert all(set(one) == set(people.columns) for one in answers if one is not None)
            if peer is not NICE:  # which knows no immutables
                assert quality.immutables_kept == 1.0
