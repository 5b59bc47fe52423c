"""The cells of a study: which there are, how they are kept, and that finished ones are not run again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpae.benchmark.cell_files import Answers, CellFiles
from gpae.benchmark.contenders import GUISES
from gpae.benchmark.plan import Bench, Cell, Plan
from gpae.benchmark.record import Record, describe_run, other_code, read_records, write_records
from gpae.benchmark.runner import run_cells
from gpae.benchmark.studies.paper import FREE, MASKED, refuse_to_lose, run_paper, whole_plan
from gpae.datasets import load
from gpae.errors import InputError
from gpae.explainers import EXPLAINERS
from gpae.progress import listening, report


def record(method: str = "GPAE", seed: int = 0, value: float = 1.0) -> Record:
    return Record("LCD", method, False, seed, "L2", value, 10, 0.5)


def test_the_whole_study_has_every_cell_of_the_papers_tables() -> None:
    plan = whole_plan([load(name) for name in ("lcd", "gmc", "fico", "adult", "law")], 5, 1000)
    kinds = [cell.kind for cell in plan.cells if cell.method not in GUISES]
    assert kinds.count("free") == 5 * 11 * 5
    assert kinds.count("masked") == 4 * 8 * 5
    assert kinds.count("classifier") == 5 * 7 * 5, "SAE, GPAE-ind and GPAE come with their methods"
    assert len({cell.name for cell in plan.cells}) == len(plan.cells)


def test_the_study_lists_the_methods_that_there_are() -> None:
    assert set(FREE) == set(EXPLAINERS)
    assert set(MASKED) < set(FREE)


def test_cells_of_another_number_of_rows_are_other_cells() -> None:
    few, many = (whole_plan([load("lcd")], 1, rows).cells for rows in (100, 1000))
    assert not {cell.name for cell in few} & {cell.name for cell in many}
    assert "lcd-0-free-gpae-chosen-rows100" in {cell.name for cell in few}
    assert "lcd-0-free-gpae-chosen" in {cell.name for cell in many}


def test_settings_chosen_among_a_few_methods_are_not_taken_for_those_chosen_among_all() -> None:
    def names(*methods: str) -> set[str]:
        return {cell.name for cell in whole_plan([load("lcd")], 1, 1000, methods=methods or None).cells}

    assert "lcd-0-free-gpae-chosen" in names()
    assert not names("gpae", "face") & names()
    assert not names("gpae", "face") & names("gpae")
    assert names("gpae", "face") == names("face", "gpae")


def test_beside_presets_the_others_must_have_been_chosen_among_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--settings chosen first"):
        run_paper(tmp_path, whole_plan([load("lcd")], 1, 1000, settings="carla"))


def test_what_a_preset_does_not_touch_is_not_run_again() -> None:
    names = {
        settings: {cell.name for cell in whole_plan([load("lcd")], 1, 1000, settings=settings).cells}  # type: ignore[arg-type]
        for settings in ("chosen", "default", "carla")
    }
    assert {"lcd-0-free-face", "lcd-0-free-gpae"} <= names["default"]
    assert {"lcd-0-free-face-carla", "lcd-0-free-gpae-chosen"} <= names["carla"]
    assert {"lcd-0-free-face-chosen", "lcd-0-free-gpae-chosen", "lcd-0-classifier-svm"} <= names["chosen"]
    assert "lcd-0-classifier-svm" not in names["carla"]


def test_a_part_of_the_study_can_be_asked_for() -> None:
    plan = whole_plan([load("lcd"), load("fico")], 2, 100, methods=["gpae", "face"], free=False)
    assert {(c.dataset, c.kind, c.method) for c in plan.cells} == {("lcd", "masked", "gpae"), ("lcd", "masked", "face")}


def test_answers_and_records_read_back_as_they_were(tmp_path: Path) -> None:
    files = CellFiles(tmp_path)
    answers = Answers(np.array([False, True]), np.array([True, False]), np.array([[0.1, 1.0], [np.nan, np.nan]]))
    files.keep("a", [record(value=0.1), record(value=float("nan"))], answers)
    again = files.answers("a")
    np.testing.assert_array_equal(again.counterfactual, answers.counterfactual)
    np.testing.assert_array_equal(again.found, answers.found)
    np.testing.assert_array_equal(again.favoured, answers.favoured)
    kept = files.records("a")
    assert kept is not None
    assert kept[0] == record(value=0.1)
    assert np.isnan(kept[1].value)
    assert files.records("b") is None


def test_records_are_sorted_and_a_foreign_folder_is_told(tmp_path: Path) -> None:
    write_records(tmp_path, [record("Wachter"), record("GPAE", 1), record("GPAE", 0)])
    assert read_records(tmp_path)[["method", "seed"]].values.tolist() == [["GPAE", 0], ["GPAE", 1], ["Wachter", 0]]
    with pytest.raises(InputError, match=r"holds no records\.parquet; make it with"):
        read_records(tmp_path / "none")


def test_cells_of_other_code_are_told_of(tmp_path: Path) -> None:
    assert other_code(tmp_path) is None
    assert other_code(tmp_path) is None, "the same code"
    (tmp_path / "code.txt").write_text("0.0.1 abc", encoding="utf-8")
    assert "begun by gpae 0.0.1 abc" in (other_code(tmp_path) or "")


def test_a_part_does_not_take_the_place_of_the_whole(tmp_path: Path) -> None:
    whole, part = (whole_plan([load("lcd")], seeds, 100, methods=["wachter", "face"], masked=False) for seeds in (2, 1))
    made = [Record("LCD", name, False, seed, "L2", 1.0, 5, 0.1) for name in ("Wachter", "FACE") for seed in (0, 1)]
    refuse_to_lose(tmp_path, part)
    write_records(tmp_path, made)
    describe_run(tmp_path, ["gpae", "bench", "paper"], rows=100)
    refuse_to_lose(tmp_path, whole)
    with pytest.raises(InputError, match=r"2 more cells, such as FACE on LCD with seed 1.*name another folder"):
        refuse_to_lose(tmp_path, part)
    with pytest.raises(InputError, match="of 100 test rows"):
        refuse_to_lose(tmp_path, replace(whole, rows=50))


def test_work_inside_a_study_reports_on_the_study(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []

    def work(folder: Path, plan: Plan, bench: Bench, cells: Sequence[Cell]) -> None:
        for cell in cells:
            report("training", 0.5)
            CellFiles(folder / "cells").keep(cell.name, [record(cell.method, cell.seed)])

    plan = Plan(tuple(Cell("lcd", 0, "free", name) for name in ("a", "b")), rows=10)
    with listening(lambda stage, share: told.append((stage, share))):
        run_cells(tmp_path, plan, work, 1)
    assert told == [("running the study", 0.0), ("running the study", 0.5), ("running the study", 1.0)]


def _work(folder: Path, plan: Plan, bench: Bench, cells: Sequence[Cell]) -> None:
    files = CellFiles(folder / "cells")
    for cell in cells:
        if cell.method == "breaks" and not (folder / "mended").exists():
            raise RuntimeError("power cut")
        files.keep(cell.name, [record(cell.method, cell.seed)])


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path, workers: int) -> None:
    cells = tuple(Cell("lcd", seed, "free", name) for seed in (0, 1) for name in ("a", "breaks", "z"))
    plan = Plan(cells, rows=10)
    with pytest.raises(RuntimeError, match="power cut"):
        run_cells(tmp_path, plan, _work, workers)
    first = tmp_path / "cells" / "lcd-0-free-a.json"
    before = first.stat().st_mtime_ns
    (tmp_path / "mended").touch()
    run_cells(tmp_path, plan, _work, workers)
    assert not CellFiles(tmp_path / "cells").unfinished(cells)
    assert first.stat().st_mtime_ns == before
