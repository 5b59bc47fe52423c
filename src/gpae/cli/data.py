"""``gpae data``: where each data set is, its checksum and its licence."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.options import Json
from gpae.cli.terminal import print_json, results

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from gpae.dataset import Dataset

__all__ = ["app"]

app = typer.Typer(help="Where each data set is, its checksum and its licence.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set, by our name or the paper's.")]


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the data sets and where each was found."""
    from gpae.datasets import DATASETS

    if as_json:
        print_json([_describe(dataset) for dataset in DATASETS.values()])
        return
    console = results()
    console.print(_overview(list(DATASETS.values())))
    if any(_where(dataset) == "absent" for dataset in DATASETS.values()):
        console.print("absent: `gpae data fetch NAME` says where to get it and where to put it", style="dim")


@app.command()
def path(name: Name, as_json: Json = False) -> None:
    """Print the path of a data set's file, its checksum verified."""
    from gpae.datasets import load

    dataset = load(name)
    paths = [str(found) for found in dataset.paths()]
    if as_json:
        print_json({"name": dataset.name, "paths": paths})
    else:
        typer.echo("\n".join(paths))


@app.command()
def fetch(name: Name, as_json: Json = False) -> None:
    """Download a data set where a public address serves it; verify it where it is here already."""
    from gpae.datasets import load

    dataset = load(name)
    paths = dataset.paths()  # says where to get a file that cannot be downloaded
    if as_json:
        print_json({"name": dataset.name, "licence": dataset.licence, "files": _files(dataset)})
        return
    for file, found in zip(dataset.files, paths, strict=True):
        typer.echo(f"{dataset.name}: {found}\nsha256 {file.sha256}, as expected. Terms: {dataset.licence}")


@app.command()
def check(as_json: Json = False) -> None:
    """Verify the checksum of every file that is here; exit with 2 if one is not as expected."""
    from gpae.datasets import DATASETS

    lines = [{"name": dataset.name, **line} for dataset in DATASETS.values() for line in _files(dataset)]
    if as_json:
        print_json(lines)
    else:
        results().print(_states(lines))
    damaged = [line for line in lines if line["state"] == "damaged"]
    for line in damaged:
        typer.echo(f"replace or delete {line['path']}: its sha256 is not {line['sha256']}", err=True)
    if damaged:
        raise typer.Exit(2)


def _describe(dataset: "Dataset") -> dict[str, Any]:
    """Return what there is to know of a data set, without reading it."""
    return {
        "name": dataset.name,
        "paper_name": dataset.paper_name,
        "title": dataset.title,
        "rows": dataset.rows,
        "features": list(dataset.features),
        "label": dataset.label,
        "favourable": dataset.favourable,
        "masked": list(dataset.masked),
        "found": _where(dataset),
        "licence": dataset.licence,
        "source": dataset.source,
        "notes": dataset.notes,
        "files": [{"file": file.path, "sha256": file.sha256} for file in dataset.files],
    }


def _files(dataset: "Dataset") -> list[dict[str, Any]]:
    """Return each file of a data set with its state; this reads the files."""
    found = [(file, file.find()) for file in dataset.files]
    return [
        {"file": file.path, "state": file.state(), "sha256": file.sha256, "path": str(path) if path else None}
        for file, path in found
    ]


def _where(dataset: "Dataset") -> str:
    """Return the place of the files; absent if one of them is."""
    places = {file.where() for file in dataset.files}
    return "absent" if "absent" in places else ", ".join(sorted(places))


def _overview(entries: "list[Dataset]") -> "Table":
    table = _table("name", "label = favourable", "masked", "found", "licence", numbers=("rows", "features"))
    for entry in entries:
        label = f"{entry.label} = {entry.favourable}"
        counts = (f"{entry.rows:,}", str(len(entry.features)))
        masked = ", ".join(entry.masked) or "-"
        table.add_row(entry.name, *counts, label, masked, _coloured(_where(entry)), entry.licence)
    return table


def _states(lines: list[dict[str, Any]]) -> "Table":
    table = _table("name", "state", "file", "path")
    for line in lines:
        table.add_row(line["name"], _coloured(line["state"]), line["file"], line["path"] or "-")
    return table


def _table(name: str, *texts: str, numbers: tuple[str, ...] = ()) -> "Table":
    """Return an empty table: the name, right-aligned columns of numbers, then columns of text."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(name, no_wrap=True, style="bold")
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    for text in texts:
        table.add_column(text, overflow="fold")
    return table


def _coloured(word: str) -> "Text":
    from rich.text import Text

    return Text(word, style={"absent": "yellow", "damaged": "red"}.get(word, "green"))
