"""The peers' own virtual environments: what goes into them, and making them where they are not."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpae.errors import GpaeError
from gpae.progress import report

__all__ = ["CFNOW", "CFRL", "DICE", "NICE", "RELAX", "EnvironmentMissingError", "PeerEnvironment", "default_folder"]

_PYTHON = (3, 11)
"""The only one that all of these packages have a build for."""
_ASK = (
    "import json, sys; from importlib.metadata import distributions as d; "
    "print(json.dumps({'python': '.'.join(map(str, sys.version_info[:3]))} | {p.name.lower().replace('_', '-'): "
    "p.version for p in d()}))"
)


class EnvironmentMissingError(GpaeError):
    """A peer's environment is not there and cannot be made; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PeerEnvironment:
    """A peer, the name of its folder and the versions that it runs with."""

    title: str
    name: str
    versions: Mapping[str, str]

    def ready(self, folder: Path) -> Path:
        """Return the environment's Python below ``folder``; made first if need be, which takes the network."""
        place, python = folder / self.name, self.python(folder)
        if self.fits(python):
            return python
        report(f"installing {self.title} into {place}", 0.0)
        self._run([_base_python(), "-m", "venv", str(place)], place)
        self._run([str(python), "-m", "pip", "install", "--disable-pip-version-check", *self.requirements], place)
        if not self.fits(python):
            raise EnvironmentMissingError(f"{place} has other versions than asked for; remove it and run again")
        report(f"installing {self.title} into {place}", 1.0)
        return python

    @property
    def requirements(self) -> list[str]:
        """As pip wants them."""
        return [f"{package}=={version}" for package, version in self.versions.items()]

    def installed(self, python: Path) -> dict[str, str]:
        """The versions that an environment has of what is asked for, and of Python; empty where there is none."""
        try:
            done = subprocess.run([str(python), "-I", "-c", _ASK], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return {}
        there = json.loads(done.stdout)
        return {name: there[name] for name in ("python", *self.versions) if name in there}

    def python(self, folder: Path) -> Path:
        """Where the environment's Python is, or would be."""
        return folder / self.name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def fits(self, python: Path) -> bool:
        """Whether an environment is there and has what is asked for; to pip 2.13.0+cpu is 2.13.0, as it is here."""
        there = self.installed(python)
        return all(there.get(package, "").partition("+")[0] == version for package, version in self.versions.items())

    def _run(self, command: Sequence[str], place: Path) -> None:
        done = subprocess.run(list(command), capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise EnvironmentMissingError(
            f"could not make the environment of {self.title} in {place}: {' '.join(said[-2:]) or 'no message'}\n"
            "It takes a connection to PyPI, once. Without one, make it on a machine like this one with\n"
            f"  python3.11 -m venv {self.name} && {self.name}/bin/pip install {' '.join(self.requirements)}\n"
            f"and name the folder that holds {self.name}/ with --environments."
        )


DICE = PeerEnvironment(
    "DiCE 0.12",
    "dice",
    {"dice-ml": "0.12", "numpy": "2.4.6", "pandas": "3.1.1", "scikit-learn": "1.9.1", "scipy": "1.17.1"},
)
NICE = PeerEnvironment(
    "NICE 0.2.3",
    "nice",
    {"nicex": "0.2.3", "numpy": "1.26.4", "pandas": "1.5.3", "scikit-learn": "1.9.1", "scipy": "1.11.4"},
)
"""It imports SciPy without asking for it, and wants versions of NumPy and pandas that are long gone."""
RELAX = PeerEnvironment(
    "ReLax 0.2.9",
    "relax",
    {
        "jax-relax": "0.2.9",
        "jax": "0.10.2",
        "jaxlib": "0.10.2",
        "keras": "3.3.3",
        "fastcore": "2.2.38",
        "nbdev": "3.3.26",
        "numpy": "2.4.6",
        "pandas": "3.1.1",
    },
)
"""It imports fastcore and nbdev without asking for them."""
CFNOW = PeerEnvironment(
    "CFNOW 0.0.6",
    "cfnow",
    {"cfnow": "0.0.6", "nltk": "3.10.4", "numpy": "2.4.6", "pandas": "3.1.1", "scikit-image": "0.26.0"},
)
# alibi is under the Business Source License 1.1, which allows use outside production; nothing of it is copied here
CFRL = PeerEnvironment(
    "alibi 0.9.6 (CFRL)",
    "cfrl",
    {
        "alibi": "0.9.6",
        "torch": "2.13.0",
        "numpy": "1.26.4",
        "pandas": "2.3.3",
        "scikit-learn": "1.9.1",
        "scipy": "1.17.1",
        "spacy": "3.7.5",
        "click": "8.5.1",
    },
)
"""The spaCy that it wants imports click without asking for it; any build of that torch will do, also for the CPU."""


def default_folder() -> Path:
    """Where the environments are kept: beside downloaded data."""
    import pooch

    return Path(pooch.os_cache("gpae")) / "peers"


def _base_python() -> str:
    """A Python of the version that the peers run on."""
    if sys.version_info[:2] == _PYTHON:
        return sys.executable
    wanted = ".".join(map(str, _PYTHON))
    found = shutil.which(f"python{wanted}")
    if found is None:
        raise EnvironmentMissingError(
            f"the peers run on Python {wanted}, and python{wanted} is not on the path (gpae itself runs on "
            f"{sys.version_info[0]}.{sys.version_info[1]}); install it, or name a folder that holds the environments "
            "with --environments"
        )
    return found
