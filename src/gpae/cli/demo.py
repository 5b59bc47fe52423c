"""``gpae demo``: the whole way once, on data that ship with the package."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.answers import block, counts, people
from gpae.cli.options import Json, Seed
from gpae.cli.quality import quality
from gpae.cli.terminal import note, print_json, progress, results
from gpae.files import check_place, written_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.answer import Answer
    from gpae.report.demo_view import DemoReport, LatentCloud
    from gpae.table.schema import Schema
    from gpae.tabular import TabularExplainer

__all__ = ["demo"]

PLANS = 3
ONLY_UP = ("educational-num",)
NO_ADVICE = ("age", "marital-status", "relationship", "capital-loss")
"""Nobody is told to grow older, to marry, or to lose money."""
_POINTS = 3000
"""Training rows whose latents are drawn."""


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the report.")] = Path(
        "report.html"
    ),
    n_people: Annotated[
        int, typer.Option("--people", metavar="N", min=1, help="How many refused people to answer.")
    ] = 5,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit on the embedded Adult data, answer refused people, print it and write a report."""
    from gpae.report.demo import demo_report

    check_place(output, (".html", ".htm"))
    start = time.perf_counter()
    train, validation, test = _adult(seed)
    with progress():
        explainer = _fitted(train, validation, seed)
        refused = _refused(explainer, test, n_people)
        answer = explainer.explain(refused, k=PLANS, seed=seed)
    report = _report(explainer, answer, refused, train, test, start)
    with written_whole(output) as temporary:
        temporary.write_text(demo_report(report), encoding="utf-8")
    _tell(report, answer, output, as_json)


def _adult(seed: int) -> "tuple[pa.Table, pa.Table, pa.Table]":
    import pyarrow as pa

    from gpae.datasets import load

    train, validation, test = (pa.Table.from_pandas(part, preserve_index=False) for part in load("adult").split(seed))
    return train, validation, test


def _schema(train: "pa.Table") -> "Schema":
    """Return what the table says, and what everybody knows: nobody unlearns a degree."""
    from gpae.datasets import load
    from gpae.table.schema import Change, Schema

    adult = load("adult")
    schema = Schema.infer(train, label=adult.label, favourable=adult.favourable, immutable=(*adult.masked, *NO_ADVICE))
    features = tuple(
        feature.model_copy(update={"change": Change.up}) if feature.name in ONLY_UP else feature
        for feature in schema.features
    )
    return schema.model_copy(update={"features": features})


def _fitted(train: "pa.Table", validation: "pa.Table", seed: int) -> "TabularExplainer":
    from gpae.tabular import TabularExplainer

    schema = _schema(train)
    explainer = TabularExplainer(label=schema.label, favourable=schema.favourable, schema=schema, seed=seed)
    return explainer.fit(train, validation=validation)


def _refused(explainer: "TabularExplainer", test: "pa.Table", n: int) -> "pa.Table":
    """Return the first people for whom the model does not predict the favourable label."""
    import pyarrow as pa

    unfavourable = explainer.predict_proba(test)[:, 1] <= 0.5
    return test.filter(pa.array(unfavourable)).slice(0, n)


def _report(
    explainer: "TabularExplainer",
    answer: "Answer",
    refused: "pa.Table",
    train: "pa.Table",
    test: "pa.Table",
    start: float,
) -> "DemoReport":
    from gpae import __version__
    from gpae.datasets import load
    from gpae.report.demo_view import DemoReport

    adult, schema = load("adult"), explainer.schema_
    seconds = f"{time.perf_counter() - start:.0f} s"
    return DemoReport(
        dataset=f"{adult.title} ({adult.source.split(';')[0]}; {adult.licence})",
        method=explainer.method,
        schema=schema,
        people=tuple(people(answer, refused, schema.names, refused.num_rows, _name)),
        statuses=answer.summary(),
        quality=quality(explainer, test),
        cloud=_cloud(explainer, train),
        choice=getattr(explainer.method_, "density_weight_", None),  # of methods that choose a weight
        notes={"version": __version__, "seed": str(explainer.seed), "time": seconds},
    )


def _name(row: int) -> str:
    return f"Person {row + 1}"


def _cloud(explainer: "TabularExplainer", train: "pa.Table") -> "LatentCloud | None":
    """Return the latents of training rows from all over the table, coloured by their labels."""
    from gpae.models.gp_autoencoder import GPAEClassifier
    from gpae.report.demo_view import LatentCloud

    model = explainer.method_.classifier_
    if not isinstance(model, GPAEClassifier):
        return None
    every = max(train.num_rows // _POINTS, 1)
    some = train.take(list(range(0, train.num_rows, every)))
    latents, labels = model.transform(explainer.codec_.encode(some).rows), explainer.codec_.labels(some)
    return LatentCloud(latents, labels == 1, model.model_, model.density_)


def _tell(report: "DemoReport", answer: "Answer", output: Path, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(report, answer, output))
        return
    console = results()
    for person in report.people:
        console.print(block(person))
    measured = report.quality
    note(f"{counts(answer.summary())}; held-out accuracy {measured.accuracy:.3f}; report: {output}")


def _as_json(report: "DemoReport", answer: "Answer", output: Path) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "summary": answer.summary(),
        "quality": asdict(report.quality),
        "beta": report.choice.beta if report.choice else None,
        "answers": answer.arrow.to_pylist(),
        "report": str(output),
    }
