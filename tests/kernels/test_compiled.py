"""The compiler's part: built once, kept by what it was built from, and no harm where it cannot be."""

import ctypes
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpae.errors import InputError
from gpae.kernels import compiled
from gpae.kernels.compiled import library, why_not

pytestmark = pytest.mark.skipif(
    library("newton.c", LATENT="2", REAL="double") is None, reason=f"nothing is compiled here: {why_not('newton.c')}"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of libraries, and nothing known of the one before."""
    monkeypatch.setattr(compiled.platformdirs, "user_cache_dir", lambda _: str(tmp_path))
    compiled._library.cache_clear()
    yield tmp_path / "kernels"
    compiled._library.cache_clear()


def built(**macros: str) -> ctypes.CDLL | None:
    return library("newton.c", **{"LATENT": "2", "REAL": "double"} | macros)


def test_a_library_is_built_once_and_kept(cache: Path) -> None:
    assert built() is not None
    (kept,) = cache.iterdir()
    assert stat.S_IMODE(cache.stat().st_mode) & 0o077 == 0  # code that is run: nobody else may put any there
    first = kept.stat().st_mtime_ns
    compiled._library.cache_clear()
    assert built() is not None
    assert [(path, path.stat().st_mtime_ns) for path in cache.iterdir()] == [(kept, first)]


def test_other_macros_are_another_library(cache: Path) -> None:
    built()
    built(LATENT="3")
    assert len(list(cache.iterdir())) == 2


def test_another_processor_is_another_library(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built()
    compiled._library.cache_clear()
    monkeypatch.setattr(compiled, "_target", lambda _: b"#define __another_processor__ 1")
    built()
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("value", ["off", "0", "OFF", "no"])
def test_a_switch_leaves_it_out(cache: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("GPAE_KERNELS", value)
    assert built() is None
    assert "GPAE_KERNELS" in str(why_not("newton.c"))
    assert not cache.exists()


def test_without_a_compiler_there_is_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.shutil, "which", lambda _: None)
    assert built() is None
    assert "no C compiler" in str(why_not("newton.c"))


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(cache: Path) -> None:
    assert built(REAL="no_such_type") is None
    assert "no_such_type" in str(why_not("newton.c"))
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.parent.joinpath("kernels").write_text("a file where the folder should be")
    assert built() is None
    assert why_not("newton.c")


def test_a_folder_that_may_not_be_written_to_is_no_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise InputError(f"output folder {str(path.parent)!r} cannot be written to; choose another")

    monkeypatch.setattr(compiled, "written_whole", refuse)
    assert built() is None
    assert "cannot be written to" in str(why_not("newton.c"))


def test_a_damaged_library_is_built_again(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built()
    (kept,) = cache.iterdir()
    elsewhere = tmp_path / "another" / "kernels" / kept.name  # what is loaded already would not be loaded again
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(b"not a library")
    monkeypatch.setattr(compiled.platformdirs, "user_cache_dir", lambda _: str(tmp_path / "another"))
    compiled._library.cache_clear()
    assert built() is not None
    assert elsewhere.stat().st_size > 1000
