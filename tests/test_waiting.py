"""Threads that wait: asked before PyTorch is loaded, and only where nobody has said otherwise."""

import os
import subprocess
import sys

import pytest


def seen(code: str, **said: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")} | said
    asked = f"{code}; import os; print(os.environ.get('GOMP_SPINCOUNT'))"
    return subprocess.run(
        [sys.executable, "-c", asked], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize(
    ("code", "said", "spins"),
    [
        ("import gpae", {}, "1000"),
        ("import gpae", {"OMP_WAIT_POLICY": "ACTIVE"}, "None"),
        ("import gpae", {"GOMP_SPINCOUNT": "7"}, "7"),
        ("import torch, gpae", {}, "None"),
    ],
)
def test_threads_wait_briefly_unless_told_otherwise(code: str, said: dict[str, str], spins: str) -> None:
    assert seen(code, **said) == spins
