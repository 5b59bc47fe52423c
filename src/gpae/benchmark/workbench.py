"""One data set and one seed: rows, the shared classifier and the metrics' helpers, made once for all methods."""

import time
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gpae import datasets
from gpae.arrays import Mask, Rows
from gpae.artefact import State, read_artefact, write_artefact
from gpae.benchmark.cell_files import Answers
from gpae.benchmark.classifiers import Parts
from gpae.benchmark.contenders import contender
from gpae.benchmark.ranks import SEVEN
from gpae.benchmark.tuning import Trial, retuned
from gpae.dataset import Dataset
from gpae.explainer import Explainer
from gpae.metric import Reference
from gpae.metrics import METRICS
from gpae.models.class_autoencoders import ClassAutoencoders, Schedule
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.results import Counterfactuals, Status
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

__all__ = ["Workbench", "scored"]

_LEND = {"cchvae": ("revise", "autoencoder"), "revise": ("cchvae", "autoencoder"), "face-paths-only": ("face", "graph")}
"""Methods that learn the same part from the same rows; whoever comes later takes it over."""
_ROWS_TO_CHOOSE_BY = 150
_SMALL_TRAIN = 3000
_SMALL_CLASSIFIER: dict[str, Any] = {"n_features": 200, "max_epochs": 5, "density_features": 100, "density_draws": 3000}


class Workbench:
    """What the cells of one data set and seed share.

    Parameters
    ----------
    dataset, seed
        The seed draws the split and the models.
    rows
        At most so many test rows are looked at.
    shared
        A folder in which the classifier and the metrics' auto-encoders are kept, so that a study that goes on, or
        another one of the same rows, does not train them again.
    small
        Whether to learn from fewer rows, with a small classifier and small auto-encoders, to be done soon.
    """

    def __init__(
        self,
        dataset: str,
        seed: int,
        rows: int,
        shared: Path,
        small: bool = False,
    ) -> None:
        self.dataset: Dataset = datasets.load(dataset)
        self.seed = seed
        self.rows = rows
        self.shared = shared / f"{dataset}-{seed}"
        self.small = small
        self._fitted: dict[tuple[str, str | None, bool], tuple[Explainer, float]] = {}

    @cached_property
    def _tables(self) -> tuple[Any, Any, Any]:
        train, valid, test = self.dataset.split(seed=self.seed)
        if self.small:
            train, valid = train.head(_SMALL_TRAIN), valid.head(_SMALL_TRAIN // 10)
        return train, valid, test.head(self.rows)

    @cached_property
    def _codecs(self) -> tuple[Codec, Codec]:
        """The encoding; and with the paper's immutable columns fixed in the schema."""
        train = self._tables[0]
        schema = Schema.infer(train, label=self.dataset.label, favourable=self.dataset.favourable)
        return Codec.fit(train, schema), Codec.fit(train, schema.with_fixed(self.dataset.masked))

    def schema(self, masked: bool) -> Schema:
        """Of the table, with the names of levels."""
        return self._codecs[masked].schema

    def layout(self, masked: bool) -> Layout:
        """Of the encoded rows."""
        return self._codecs[masked].layout

    @cached_property
    def parts(self) -> Parts:
        """Encoded rows and labels."""
        codec = self._codecs[False]
        train, valid, test = ((codec.encode(table).rows, codec.labels(table)) for table in self._tables)
        return Parts(train, valid, test)

    @cached_property
    def classifier(self) -> GPAEClassifier:
        """The classifier that all post-hoc methods explain, and that judges every answer."""
        path = self.shared / "classifier.gpae"
        if path.is_file():
            return GPAEClassifier.from_state(read_artefact(path))
        model = GPAEClassifier(random_state=self.seed, **(_SMALL_CLASSIFIER if self.small else {}))
        model.fit(*self.parts.train, validation=self.parts.valid)
        self._keep(path, model.state())
        return model

    @cached_property
    def _autoencoders(self) -> ClassAutoencoders:
        path = self.shared / "class_autoencoders.gpae"
        if path.is_file():
            return ClassAutoencoders.from_state(read_artefact(path))
        schedule = Schedule(max_steps=1000) if self.small else None
        made = ClassAutoencoders.fit(*self.parts.train, seed=self.seed, schedule=schedule)
        self._keep(path, made.state())
        return made

    @staticmethod
    def _keep(path: Path, state: State) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_artefact(path, state)

    def reference(self, masked: bool, part: Literal["valid", "test"] = "test") -> Reference:
        """What answers are measured against; the auto-encoders of IM1 and IM2 are trained once."""
        train, labels = self.parts.train
        rows = getattr(self.parts, part)[0]
        made = {"class_autoencoders": self._autoencoders}
        return Reference(train, labels, rows, self.layout(masked), self.classifier, seed=self.seed, made=made)

    @cached_property
    def refused(self) -> Rows:
        """The queries of every method: the test rows that the shared classifier refuses."""
        return self._refused_of(self.parts.test[0])

    @cached_property
    def refused_to_choose_by(self) -> Rows:
        """Refused validation rows, on which settings are chosen."""
        return self._refused_of(self.parts.valid[0])[:_ROWS_TO_CHOOSE_BY]

    def _refused_of(self, X: Rows) -> Rows:
        return X[self.classifier.predict_proba(X)[:, 1] < 0.5]

    def fitted(self, name: str, preset: str | None, masked: bool) -> tuple[Explainer, float]:
        """A contender and the seconds of its fit; fitted once.

        The seconds of a part that another has learnt from the same rows count for both.
        """
        key = (name, preset, masked)
        if key not in self._fitted:
            layout = self.layout(masked)
            method = contender(name).make(self.classifier, preset)
            lent, seconds = self._lent(name, preset, masked)
            started = time.perf_counter()
            method.set_params(**lent).fit(*self.parts.train, layout=layout, validation=self.parts.valid)
            self._fitted[key] = method, seconds + time.perf_counter() - started
        return self._fitted[key]

    def _lent(self, name: str, preset: str | None, masked: bool) -> tuple[dict[str, Any], float]:
        """What another method has learnt for this one, and in how many seconds."""
        lender, part = _LEND.get(name, ("", ""))
        if (lender, preset, masked) not in self._fitted:
            return {}, 0.0
        method, seconds = self._fitted[lender, preset, masked]
        return {part: getattr(method, f"{part}_")}, seconds

    def answers(self, method: Explainer, rows: Rows) -> tuple[Answers, float]:
        """What a method answers to rows, and in how many seconds."""
        started = time.perf_counter()
        found = method.explain(rows, 1, seed=self.seed)
        return _first_plans(found), time.perf_counter() - started

    def trial(self, name: str, number: int, masked: bool) -> Trial:
        """One of a method's trials, measured on validation rows."""
        method = self.fitted(name, None, masked)[0]
        method, settings = retuned(name, method, number, self.parts, self.layout(masked))
        answers, _ = self.answers(method, self.refused_to_choose_by)
        scores = scored(answers, self.refused_to_choose_by, self.reference(masked, "valid"))
        return Trial(settings, {metric: scores[metric][0] for metric in SEVEN})

    def chosen(self, name: str, number: int, masked: bool) -> Explainer:
        """A method under the settings of one of its trials."""
        return retuned(name, self.fitted(name, None, masked)[0], number, self.parts, self.layout(masked))[0]


def _first_plans(found: Counterfactuals) -> Answers:
    """One entry a query, in the queries' order."""
    first = found.plan == 0
    favoured = found.status[first] == Status.ALREADY_FAVOURABLE
    return Answers(favoured, found.found[first], found.counterfactual[first])


def scored(answers: Answers, X: Rows, reference: Reference, rows: Mask | None = None) -> dict[str, tuple[float, int]]:
    """Every metric of the catalogue on all queries X, or on some of them: value and number of rows."""
    unanswered = np.where(answers.favoured, Status.ALREADY_FAVOURABLE, Status.NOT_FOUND)
    queries = Counterfactuals(
        row=np.arange(len(X)),
        plan=np.zeros(len(X), dtype=np.int64),
        factual=X,
        counterfactual=answers.counterfactual,
        target=np.ones(len(X), dtype=np.int64),
        found=answers.found,
        status=np.where(answers.found, Status.FOUND, unanswered).astype(np.str_),
    )
    out = {}
    for metric in METRICS.values():
        score = metric(queries, metric.prepare(reference), rows)
        out[metric.name] = (score.value, score.n_rows)
    return out
