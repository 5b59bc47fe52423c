"""The saved model: one file that holds a JSON manifest and safetensors, both checksummed. No code, no pickle.

The file is a plain (stored, not compressed) zip archive with ``manifest.json`` and ``arrays.safetensors``, so that
anybody can look inside. The manifest carries the format's version, the versions that wrote it and the SHA-256 of the
arrays; its own checksum stands in the archive's comment.
"""

import hashlib
import json
import os
import platform
import zipfile
import zlib
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
import safetensors
import safetensors.numpy
import torch
from numpy.typing import NDArray

from gpae.errors import ArtefactError
from gpae.files import written_whole

__all__ = ["FORMAT", "State", "flatten", "read_artefact", "unflatten", "write_artefact"]

FORMAT = 2
_KIND = "gpae-model"
_MANIFEST, _ARRAYS = "manifest.json", "arrays.safetensors"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class State:
    """What has to be saved of a fitted object: arrays by name, and plain JSON values."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]

    def with_part(self, name: str, part: "State") -> "State":
        """This state and, under a name of its own, that of a part."""
        arrays = {f"{name}.{key}": array for key, array in part.arrays.items()}
        return State(self.arrays | arrays, self.values | {name: part.values})

    def part(self, name: str) -> "State":
        """What :meth:`with_part` put under a name."""
        own = {key.removeprefix(f"{name}."): a for key, a in self.arrays.items() if key.startswith(f"{name}.")}
        return State(own, self.values[name])


def flatten(value: Any, prefix: str) -> dict[str, NDArray[Any]]:
    """The tensors of a (nested) dataclass as arrays named ``prefix.field``."""
    out: dict[str, NDArray[Any]] = {}
    for field in fields(value):
        part, name = getattr(value, field.name), f"{prefix}.{field.name}"
        if is_dataclass(part):
            out |= flatten(part, name)
        else:
            out[name] = np.array(part.detach().cpu().numpy(), order="C")
    return out


def unflatten(cls: type[T], arrays: dict[str, NDArray[Any]], prefix: str) -> T:
    """Rebuild a dataclass of tensors from :func:`flatten`'s arrays."""
    hints = get_type_hints(cls)
    parts: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]
        name = f"{prefix}.{field.name}"
        if is_dataclass(hints[field.name]):
            parts[field.name] = unflatten(hints[field.name], arrays, name)
        elif name in arrays:
            parts[field.name] = torch.from_numpy(np.array(arrays[name]))
        else:
            raise ArtefactError(f"the model file lacks the array {name!r}; fit and save the model again")
    return cls(**parts)


def write_artefact(path: str | os.PathLike[str], state: State) -> None:
    """Write atomically: the file is complete or not there."""
    arrays = safetensors.numpy.save({k: np.array(v, order="C") for k, v in state.arrays.items()})
    manifest = {
        "kind": _KIND,
        "format": FORMAT,
        "written_by": _versions(),
        "sha256": {_ARRAYS: hashlib.sha256(arrays).hexdigest()},
        "values": state.values,
    }
    text = json.dumps(manifest, indent=1, allow_nan=False, sort_keys=True).encode()
    with written_whole(Path(path)) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        # a fixed date, so that the same model gives the same bytes
        for name, content in ((_MANIFEST, text), (_ARRAYS, arrays)):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        archive.comment = hashlib.sha256(text).hexdigest().encode()


def read_artefact(path: str | os.PathLike[str]) -> State:
    """Read and verify a model file; anything that is not one, or is damaged, is refused with the reason."""
    source = Path(path)
    if not source.exists():
        raise ArtefactError(f"there is no model file {source}; make one with `gpae fit TABLE ... -o {source.name}`")
    try:
        with zipfile.ZipFile(source) as archive:
            text, arrays, seal = (
                archive.read(_MANIFEST),
                archive.read(_ARRAYS),
                archive.comment.decode("ascii"),
            )
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, EOFError, ValueError, RuntimeError) as error:
        raise ArtefactError(f"{source} is not a gpae model, or it is damaged: {error}") from error
    if hashlib.sha256(text).hexdigest() != seal:
        raise ArtefactError(f"{source} is damaged: the manifest's checksum is wrong; copy it again or fit again")
    try:
        manifest = json.loads(text)
        kind, version, digest = manifest["kind"], manifest["format"], manifest["sha256"][_ARRAYS]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtefactError(f"{source} is not a gpae model: its manifest cannot be read ({error!r})") from error
    if kind != _KIND or version != FORMAT:
        found = f"{kind!r}, format {version!r}"
        raise ArtefactError(f"{source} holds {found}; this version reads {_KIND!r}, format {FORMAT}: fit again")
    if hashlib.sha256(arrays).hexdigest() != digest:
        raise ArtefactError(f"{source} is damaged: the arrays' checksum is wrong; copy it again or fit again")
    try:
        return State(safetensors.numpy.load(arrays), dict(manifest["values"]))
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ArtefactError(f"{source} is not a gpae model: its contents cannot be read ({error})") from error


def _versions() -> dict[str, str]:
    from gpae import __version__

    return {
        "gpae": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }
