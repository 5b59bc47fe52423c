"""C that is compiled on first use for the processor at hand, and kept.

A wheel cannot know the processor, and vector code for the least common one is several times slower. So the source is
shipped, and the machine's own compiler makes a library of it, once: the file's name is a digest of the source, the
flags, the compiler and what the compiler knows of the processor, so a cache that several machines share does no harm.
Without a compiler, or where ``GPAE_KERNELS=off``, there is no library, and the callers go their plain way.
"""

import ctypes
import hashlib
import logging
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import platformdirs

from gpae.errors import InputError
from gpae.files import written_whole

__all__ = ["library", "switched_off", "why_not"]

_SWITCH = "GPAE_KERNELS"
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fPIC", "-shared")
_SECONDS = 120
_HERE = Path(__file__).parent
_HEADERS = tuple(sorted(path.name for path in _HERE.glob("*.h")))

_log = logging.getLogger(__name__)
_reasons: dict[str, str] = {}


def switched_off() -> bool:
    """Whether the user wants no compiled code."""
    return os.environ.get(_SWITCH, "").lower() in ("off", "0", "no", "false")


def why_not(source: str) -> str | None:
    """Why the last one asked for of this source is not there; None where it is, or nobody has asked."""
    return _reasons.get(source)


def library(source: str, **defined: str) -> ctypes.CDLL | None:
    """The library of a source file of this package, compiled with some macros defined; None where that cannot be."""
    if switched_off():
        _reasons[source] = f"switched off by {_SWITCH}"
        return None
    return _library(source, tuple(f"-D{name}={value}" for name, value in sorted(defined.items())))


@cache
def _library(source: str, macros: tuple[str, ...]) -> ctypes.CDLL | None:
    try:
        loaded = _loaded(source, macros)
        _reasons.pop(source, None)
        return loaded
    except (OSError, subprocess.SubprocessError, InputError) as error:
        _reasons[source] = _in_a_line(error)
        _log.info("no compiled %s: %s", source, _reasons[source])
        return None


def _loaded(source: str, macros: tuple[str, ...]) -> ctypes.CDLL:
    path = _built(source, macros)
    try:
        return ctypes.CDLL(str(path))
    except OSError:  # damaged, or of a system that was since renewed
        path.unlink()
        return ctypes.CDLL(str(_built(source, macros)))


def _built(source: str, macros: tuple[str, ...]) -> Path:
    compiler = _compiler()
    flags = (*_FLAGS, *macros)
    texts = [(_HERE / name).read_bytes() for name in (*_HEADERS, source)]
    digest = hashlib.sha256(b"\0".join([*texts, " ".join(flags).encode(), _target(compiler)])).hexdigest()
    folder = Path(platformdirs.user_cache_dir("gpae")) / "kernels"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{Path(source).stem}-{digest[:20]}.so"
    if not path.exists():
        with written_whole(path) as temporary:
            command = [compiler, *flags, str(_HERE / source), "-o", str(temporary), "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    return path


def _compiler() -> str:
    wanted = os.environ.get("CC")
    for name in (wanted, *_COMPILERS) if wanted else _COMPILERS:
        if name and (path := shutil.which(name)):
            return path
    raise FileNotFoundError("no C compiler on this machine (looked for $CC, " + ", ".join(_COMPILERS) + ")")


@cache
def _target(compiler: str) -> bytes:
    """Everything that the compiler has to say of itself and of the processor."""
    command = [compiler, "-march=native", "-dM", "-E", "-x", "c", "-"]
    return subprocess.run(command, input=b"", check=True, capture_output=True, timeout=_SECONDS).stdout


def _in_a_line(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode(errors="replace").strip().splitlines()
        return f"the compiler failed: {said[0] if said else f'exit {error.returncode}'}"
    return str(error)
