"""CFRL in its own environment: it answers with rows of the table, and learns once."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from gpae.benchmark.peers.case import Case, perceptron
from gpae.benchmark.peers.crew import crew_of
from gpae.benchmark.peers.environment import CFRL, default_folder
from gpae.benchmark.peers.measures import Measures
from gpae.benchmark.peers.worker import Reply, working
from tests.benchmark.jobs import Jobs

ENVIRONMENTS = Path(os.environ.get("GPAE_PEERS", default_folder()))
STEPS = 300
"""Enough for a table of four columns; in the study it takes thousands."""

pytestmark = pytest.mark.skipif(
    not CFRL.fits(CFRL.python(ENVIRONMENTS)),
    reason=f"{CFRL.title} is not in {ENVIRONMENTS}; `gpae bench speed` puts it there, GPAE_PEERS names others",
)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case.of(tmp_path_factory.mktemp("case") / "jobs", Jobs(), 0, perceptron)  # type: ignore[arg-type]


def replies(case: Case, log: Path, steps: int) -> dict[str, Reply]:
    command = [*crew_of((CFRL,), case.folder, ENVIRONMENTS).commands["cfrl"], str(steps)]
    with working("cfrl", command, log, 1) as worker:
        return {call: worker.answer(call, range(20), batch=10) for call in ("library", "arrays")}


def test_it_learns_once_and_answers_with_rows_of_the_table(case: Case, tmp_path: Path) -> None:
    first = replies(case, tmp_path / "first.log", STEPS)
    told = json.loads((case.folder / "cfrl.json").read_text())
    assert told["steps"] == STEPS
    assert 0.0 < told["of_them_autoencoder"] < told["seconds"]
    for reply in first.values():
        quality = Measures.of(case).scores(case.first(20), reply.answers).quality()
        assert (quality.answered, quality.violations) == (20, 0.0)  # immutables, range and whole numbers
        assert quality.valid_as_given == quality.valid >= 0.5
        assert all(set(one) == set(case.queries.columns) for one in reply.answers if one is not None)
    assert first["library"].answers == first["arrays"].answers

    again = replies(case, tmp_path / "again.log", STEPS)
    assert again["library"].answers == first["library"].answers
    assert json.loads((case.folder / "cfrl.json").read_text()) == told
    assert "learnt in" in (tmp_path / "first.log").read_text()
    assert "learnt in" not in (tmp_path / "again.log").read_text()

    more = replies(case, tmp_path / "more.log", STEPS + 1)
    assert "learnt in" in (tmp_path / "more.log").read_text()
    assert more["library"].answered == 20


def test_what_it_learnt_is_kept_as_plain_arrays(case: Case, tmp_path: Path) -> None:
    replies(case, tmp_path / "log", STEPS)
    with np.load(case.folder / "cfrl.npz", allow_pickle=False) as kept:
        assert {name.partition(".")[0] for name in kept} == {"encoder", "decoder", "actor"}
        assert all(kept[name].dtype == np.float32 for name in kept)
