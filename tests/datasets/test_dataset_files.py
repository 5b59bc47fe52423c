"""Files are found in order, verified, downloaded where possible, and asked for in words that help."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gpae import datasets
from gpae.dataset import DATA_HOME, Dataset
from gpae.errors import DataMissingError, InputError

Put = Callable[..., Path]
WithUrl = Callable[[Dataset, str], Dataset]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_every_file_that_is_here_has_its_checksum(dataset: Dataset) -> None:
    assert [file.state() for file in dataset.files] == ["ok"] * len(dataset.files)


def test_adult_ships_with_the_package(empty_machine: Path) -> None:
    adult = datasets.load("adult")
    assert adult.files[0].where() == "package"
    assert adult.path().parent == Path(datasets.__file__).parent
    assert adult.path().with_name("adult.LICENSE.txt").is_file()


def test_the_data_home_comes_before_the_cache(toy: Dataset, put: Put, tmp_path: Path) -> None:
    at_home = put(toy)
    cached = tmp_path / "cache" / "toy" / "toy.csv"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(at_home.read_bytes())
    assert (toy.files[0].where(), toy.path()) == ("data home", at_home)
    at_home.unlink()
    assert (toy.files[0].where(), toy.path()) == ("cache", cached)


def test_without_a_data_home_the_cache_is_looked_in(toy: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_HOME)
    assert list(toy.files[0].places()) == ["cache"]
    assert toy.files[0].where() == "absent"


def test_a_missing_file_is_asked_for_with_source_place_and_checksum(toy: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataMissingError) as caught:
        toy.frame()
    message = str(caught.value)
    for needed in (
        "'toy' (Six rows) is not on this machine",
        "the toy shop",
        "CC0",
        DATA_HOME,
        "toy/toy.csv",
        str(tmp_path / "cache" / "toy" / "toy.csv"),
        toy.files[0].sha256,
        "gpae data check",
    ):
        assert needed in message


@pytest.mark.usefixtures("empty_machine")
@pytest.mark.parametrize("name", sorted({*datasets.DATASETS} - {"adult"}))
def test_each_data_set_that_does_not_ship_says_how_to_get_it(name: str) -> None:
    entry = datasets.load(name)
    with pytest.raises(DataMissingError, match="Where it comes from"):
        entry.split()


def test_a_file_of_other_content_is_refused(toy: Dataset, put: Put) -> None:
    path = put(toy, b"x,y\n1,0\n")
    assert toy.files[0].state() == "damaged"
    with pytest.raises(InputError, match="is not the expected file") as caught:
        toy.frame()
    message = str(caught.value)
    assert str(path) in message
    assert toy.files[0].sha256 in message
    assert "replace or delete it" in message


def test_a_file_with_a_public_address_is_downloaded_once(
    toy: Dataset, put: Put, with_url: WithUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shop = put(toy).rename(tmp_path / "toy.csv").parent
    with _served(shop) as address:
        online = with_url(toy, f"{address}/toy.csv")
        assert len(online.frame()) == 6
    assert online.files[0].where() == "cache"
    assert len(online.frame()) == 6  # the shop has closed


def test_a_download_of_other_content_is_refused(
    toy: Dataset, put: Put, with_url: WithUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    shop = put(toy, b"another").rename(tmp_path / "toy.csv").parent
    with (
        _served(shop) as address,
        pytest.raises(DataMissingError, match=r"could not download .*/toy\.csv"),
    ):
        with_url(toy, f"{address}/toy.csv").path()
    assert toy.files[0].where() == "absent"
