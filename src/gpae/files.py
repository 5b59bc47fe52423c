"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpae.errors import InputError, either

__all__ = ["check_place", "written_whole"]


def check_place(path: Path, endings: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written to, before long work is done for it."""
    folder = path.parent
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"output {str(path)!r} must end in {either(endings)}")
    if not folder.is_dir():
        raise InputError(f"output folder {str(folder)!r} does not exist; create it first")
    if path.is_dir():
        raise InputError(f"output {str(path)!r} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InputError(f"output {str(path)!r} is a device or a pipe, which would be replaced; name a file")
    if not os.access(folder, os.W_OK):
        raise InputError(f"output folder {str(folder)!r} cannot be written to; choose another")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary file of the same name to write; it takes its place when the block ends well."""
    check_place(path)
    path = path.resolve()  # the file behind a link is meant, not the link
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".gpae-") as folder:
        temporary = Path(folder) / path.name
        yield temporary
        temporary.replace(path)
