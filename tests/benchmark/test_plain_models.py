"""The model that peers are given is the very one that ours explains."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpae.benchmark.peers.case import EXPLAINER, Case, _without_gaps
from gpae.benchmark.peers.gpae_model import plain_gpae
from gpae.benchmark.peers.plain import model as plain
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.dataset import Dataset
from gpae.errors import InputError
from gpae.tabular import TabularExplainer
from tests.benchmark.jobs import Jobs, Records


def small_gpae(folder: Path, train: pd.DataFrame, dataset: Dataset, seed: int) -> PlainModel:
    explainer = TabularExplainer(
        label=dataset.label, favourable=dataset.favourable, immutable=dataset.masked, n_features=60, max_epochs=4
    ).fit(train)
    explainer.save(folder / EXPLAINER)
    return plain_gpae(explainer, train)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case.of(tmp_path_factory.mktemp("case") / "records", Records(), 0, small_gpae)  # type: ignore[arg-type]


def test_a_plain_gpae_says_what_the_explainer_says(case: Case) -> None:
    explainer = TabularExplainer.load(case.folder / EXPLAINER)
    for part in Records().split(0):
        beyond = part.assign(age=part["age"] + 30, months=part["months"].where(part["months"] < 0, 500))
        for rows in (part, beyond):
            told = case.model.predict_proba(_without_gaps(rows, Records()))  # type: ignore[arg-type]
            np.testing.assert_allclose(told, explainer.predict_proba(rows), atol=1e-9, rtol=0.0)
    assert case.train["job"].eq("?").any()
    assert case.train["months"].lt(0).any()
    assert case.model.meta["codes"] == {"months": [-9, -7]}
    assert case.model.meta["immutable"] == ["sex"]


def test_a_file_of_people_is_read_as_it_was_written(case: Case) -> None:
    train = _without_gaps(Records().split(0)[0], Records())  # type: ignore[arg-type]
    np.testing.assert_array_equal(case.model.columns.inputs(train), case.model.columns.inputs(case.train))
    numbers = case.queries[case.model.columns.numbers].to_numpy(dtype=float)
    names = list(case.queries.columns)
    spelled = case.model.columns.spelled(numbers, case.model.columns.codes(case.queries), names)
    assert spelled == case.queries.astype(object).to_dict("records")


def test_a_peers_python_reads_the_model_without_gpae(case: Case) -> None:
    here = Path(plain.__file__).parents[1]
    code = (
        f"import sys; sys.path.insert(0, {str(here)!r}); from pathlib import Path\n"
        "from plain.model import PlainModel; import plain.serving\n"
        f"model = PlainModel.read(Path({str(case.folder)!r}))\n"
        f"print(model.predict_proba(model.columns.table(Path({str(case.folder)!r}) / 'queries.csv'))[:, 1].max())\n"
        "print(sorted({'gpae', 'torch', 'sklearn'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert float(said[0]) <= 0.5
    assert said[1] == "[]"


def test_what_the_plain_form_does_not_know_is_refused() -> None:
    train = Jobs().split(0)[0].assign(age=lambda table: table["age"].where(table["age"] < 70))
    explainer = TabularExplainer(label="pay", favourable="high", n_features=20, max_epochs=1).fit(train)
    with pytest.raises(InputError, match="'age' has gaps"):
        plain_gpae(explainer, train)
