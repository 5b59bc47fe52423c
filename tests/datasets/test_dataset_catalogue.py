"""The catalogue holds what the folder holds, and each entry tells the truth about its table."""

import subprocess
import sys
from pathlib import Path

import narwhals as nw
import pandas as pd
import pytest

from gpae import datasets
from gpae.dataset import Dataset
from gpae.errors import InputError

PAPER_NAMES = {
    "adult": "Adult",
    "fico": "FICO",
    "gmc": "GMC",
    "law": "LAW",
    "lcd": "LCD",
    "lcd-term": "LCD-term",
}
FEATURES = {"adult": 11, "fico": 23, "gmc": 10, "law": 11, "lcd": 5, "lcd-term": 6}
MASKED = {
    "adult": ("race", "gender"),
    "fico": (),
    "gmc": ("age",),
    "law": ("male",),
    "lcd": ("int_rate",),
    "lcd-term": ("int_rate",),
}


def test_each_file_in_the_folder_is_one_data_set() -> None:
    folder = Path(datasets.__file__).parent
    stems = {path.stem.replace("_", "-") for path in folder.glob("*.py")} - {"--init--"}
    assert stems == set(datasets.DATASETS) == set(PAPER_NAMES)


@pytest.mark.parametrize(("name", "paper_name"), PAPER_NAMES.items())
def test_a_data_set_answers_to_the_papers_name(name: str, paper_name: str) -> None:
    assert datasets.load(paper_name) is datasets.load(name)
    assert datasets.load(name).paper_name == paper_name


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown data set 'iris'; known: adult, fico, gmc, law, lcd, lcd-term"):
        datasets.load("iris")


@pytest.mark.parametrize("name", PAPER_NAMES)
def test_features_and_masked_columns_are_the_papers(name: str) -> None:
    entry = datasets.load(name)
    assert len(entry.features) == FEATURES[name]
    assert entry.masked == MASKED[name]
    assert {*entry.masked, *entry.categorical, *entry.codes} <= set(entry.features)


def test_the_frame_has_the_rows_and_columns_it_promises(dataset: Dataset) -> None:
    frame = dataset.frame()
    assert list(frame.columns) == [*dataset.features, dataset.label]
    assert len(frame) == dataset.rows
    assert frame[dataset.label].nunique() == 2
    assert dataset.favourable in set(frame[dataset.label])
    assert nw.from_native(frame, eager_only=True).shape == frame.shape


def test_only_adults_work_columns_have_missing_values(dataset: Dataset) -> None:
    missing = dataset.frame().isna().sum()
    expected = {"workclass": 2_799, "occupation": 2_809} if dataset.name == "adult" else {}
    assert missing[missing > 0].to_dict() == expected


def test_categorical_columns_come_as_text(dataset: Dataset) -> None:
    frame = dataset.frame()
    assert all(isinstance(value, str) for name in dataset.categorical for value in frame[name])


def test_codes_occur_in_the_table_and_lie_apart_from_the_quantities(dataset: Dataset) -> None:
    frame = dataset.frame()
    for name, codes in dataset.codes.items():
        is_code = frame[name].isin(codes)
        quantities = frame.loc[~is_code, name]
        assert is_code.any()
        assert quantities.min() >= 0
        assert not quantities.between(min(codes), max(codes)).any()


def test_fico_has_39_encoded_columns() -> None:
    fico = datasets.load("fico")
    if fico.files[0].find() is None:
        pytest.skip("the FICO file is not on this machine")
    frame = fico.frame()
    levels = {name: set(frame[name]) for name in fico.categorical}
    assert {name: len(values) for name, values in levels.items()} == {
        "MaxDelq2PublicRecLast12M": 10,
        "MaxDelqEver": 8,
    }
    assert all("-9" in values for values in levels.values())
    encoded = pd.get_dummies(frame[list(fico.features)], columns=list(fico.categorical))
    assert encoded.shape[1] == 39


def test_the_catalogue_does_not_load_torch() -> None:
    code = "import sys, gpae.datasets; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
