"""Numbers that the C sources share with the Python they follow: one that is changed is changed in both."""

import re
from pathlib import Path

import pytest

import gpae.kernels
from gpae.kernels import cosines, lanes, packing
from gpae.search import polish, steps
from gpae.table import value_block

FOLDER = Path(gpae.kernels.__file__).parent


def defined(source: str, name: str) -> float:
    (text,) = re.findall(
        rf"^#define {name} (?:\(\(REAL\))?(\S+?)\)?(?:\s|$)", (FOLDER / source).read_text(), re.MULTILINE
    )
    return float(eval(text.strip("()f")))


@pytest.mark.parametrize(
    ("source", "name", "value"),
    [
        ("polish.c", "SLACK", polish._SLACK),
        ("polish.c", "TRIALS", polish._TRIALS),
        ("polish.c", "REPAIRS", polish._REPAIRS),
        ("polish.c", "TIGHTENINGS", polish._TIGHTENINGS),
        ("polish.c", "STRIDES", len(value_block._STRIDES)),
        ("layout.h", "SAME", value_block.SAME),
        ("step.h", "ROUNDS", steps._ROUNDS),
        ("full_step.h", "FLAT", steps._FLAT),
        ("step.h", "LATENT_DAMPING", steps._LATENT_DAMPING),
        ("step.h", "LEAST_BEND", steps._LEAST_BEND),
        ("step.h", "MOST_BEND", steps._MOST_BEND),
        ("step.h", "TELLING", steps._TELLING),
        ("point.h", "FEATURES", lanes._FEATURES),
        ("cosines.c", "FEATURES", cosines._FEATURES),
        ("cosines.c", "OUTPUTS", cosines._OUTPUTS),
        ("vectors.h", "SHEAF", packing.SHEAF),
    ],
)
def test_both_say_the_same(source: str, name: str, value: float) -> None:
    assert defined(source, name) == value


@pytest.mark.parametrize("name", ["_LEAST_BEND", "_MOST_BEND", "_TELLING", "_ROUNDS"])
def test_the_gpu_says_so_too(name: str) -> None:
    (text,) = re.findall(
        rf"^{name}: tl.constexpr = tl.constexpr\((\S+)\)$", (FOLDER / "triton_steps.py").read_text(), re.MULTILINE
    )
    assert float(text) == getattr(steps, name)


def test_free_strides_too() -> None:
    assert "#define FREE_STRIDE (1.0 / 2000.0)" in (FOLDER / "polish.c").read_text()
    assert value_block._FREE_STRIDE == 1.0 / 2000.0
