"""TabularExplainer: tables in, tables out, a method in between."""

import inspect
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from gpae.answer import OWN_COLUMNS, Answer
from gpae.answer_writer import AnswerWriter
from gpae.arrays import Rows
from gpae.artefact import State, read_artefact, write_artefact
from gpae.errors import ArtefactError, InputError, one_of
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.favourable import FavourableRows
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.codec import Codec
from gpae.table.levels import Level, find_level, listed
from gpae.table.schema import ScalingName, Schema

__all__ = ["TabularExplainer"]


class TabularExplainer:
    """Fit a classifier on a table, and tell the people it refuses what would have to change for a yes.

    Parameters
    ----------
    label, favourable
        The label column and the value that a person wants.
    method
        A name of the registry ``gpae.explainer.EXPLAINERS``.
    schema
        None: inferred from the training table; or a :class:`Schema`, its plain values, or the path of a schema file.
    immutable
        Features that must never change.
    scaling
        ``"minmax"`` (the paper's), ``"robust"`` or ``"quantile"``.
    seed
        Of every draw in ``fit``.
    drop
        Columns of the training table that are no features.
    prefix
        In front of our columns in ``answer.table``, for tables that have such a name among their features.
    **hyper_parameters
        The method's and its classifier's own; an unknown one is a TypeError that lists the known ones.

    Examples
    --------
    >>> import pandas as pd, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"income": rng.integers(10, 90, 300), "debt": rng.integers(0, 50, 300)})
    >>> people["loan"] = np.where(people.income - people.debt > 20, "yes", "no")
    >>> explainer = TabularExplainer(label="loan", favourable="yes", n_features=100, max_epochs=5)
    >>> answer = explainer.fit(people).explain(people[people.loan == "no"].head(2))
    >>> list(answer.table.columns[:4])
    ['row', 'plan', 'status', 'found']
    """

    schema_: Schema
    codec_: Codec
    method_: Explainer
    favourable_rows_: FavourableRows

    def __init__(
        self,
        *,
        label: str,
        favourable: Any,
        method: str = "gpae",
        schema: Schema | dict[str, Any] | str | PathLike[str] | None = None,
        immutable: Sequence[str] = (),
        scaling: ScalingName = "minmax",
        seed: int = 0,
        drop: Sequence[str] = (),
        prefix: str = "",
        **hyper_parameters: Any,
    ) -> None:
        self.label = label
        self.favourable = _plain(favourable)
        self.method = EXPLAINERS.resolve(_text(method, "method"))
        self.schema = schema
        self.immutable = _names(immutable, "immutable")
        one_of("scaling", scaling, ("minmax", "robust", "quantile"))
        self.scaling: ScalingName = scaling
        self.seed = _seed(seed)
        self.drop = _names(drop, "drop")
        self.prefix = _text(prefix, "prefix")
        self.hyper_parameters = {name: _plain(value) for name, value in hyper_parameters.items()}
        self._new_method()

    def _new_method(self, labels: tuple[Level, Level] | None = None) -> Explainer:
        """An unfitted method with its share of the hyper-parameters; the classifier gets the rest.

        Weights of classes are given by label; the classifier sees classes 0 and 1.
        """
        cls = EXPLAINERS[self.method]
        own = set(inspect.signature(cls).parameters) - {"classifier"}
        inner = set(inspect.signature(GPAEClassifier).parameters) - {"random_state"}
        unknown = sorted(set(self.hyper_parameters) - own - inner)
        if unknown:
            raise TypeError(
                f"method {self.method!r} has no hyper-parameter {unknown[0]!r}; known: {', '.join(sorted(own | inner))}"
            )
        for_classifier = {k: v for k, v in self.hyper_parameters.items() if k in inner}
        for_method = {k: v for k, v in self.hyper_parameters.items() if k in own}
        if labels is not None and isinstance(for_classifier.get("class_weight"), dict):
            for_classifier["class_weight"] = _by_class(for_classifier["class_weight"], labels)
        return cls(classifier=GPAEClassifier(**for_classifier, random_state=self.seed), **for_method)

    # fitting

    def fit(self, train: Any, validation: Any = None) -> "TabularExplainer":
        """Learn from a table (pandas, polars or pyarrow) that holds the features and the label.

        ``validation``: a second table for choosing and stopping; None: a tenth of ``train``, stratified and seeded.
        """
        schema = self._schema_for(train)
        self._refuse_collisions(schema)
        codec = Codec.fit(train, schema, self.scaling)
        X, y = codec.encode(train).rows, codec.labels(train)
        if len(np.unique(y)) < 2:
            raise InputError(
                f"label column {schema.label!r} holds only {codec.schema.labels[int(y[0])]!r}; "  # type: ignore[index]
                "a classifier needs rows of both classes"
            )
        held_out = None if validation is None else self._validation(codec, validation)
        method = self._new_method(codec.schema.labels).fit(X, y, layout=codec.layout, validation=held_out)
        self.codec_, self.schema_, self.method_ = codec, codec.schema, method
        self._learn_favourable(X)
        return self

    def _schema_for(self, train: Any) -> Schema:
        if self.schema is None:
            return Schema.infer(
                train, label=self.label, favourable=self.favourable, immutable=self.immutable, drop=self.drop
            )
        schema = self._given_schema()
        if schema.label != self.label:
            raise InputError(f"the schema's label is {schema.label!r}, but label={self.label!r} was asked for")
        if str(schema.favourable) != str(self.favourable):
            raise InputError(
                f"the schema's favourable value is {schema.favourable!r}, "
                f"but favourable={self.favourable!r} was asked for"
            )
        if self.drop:
            raise InputError(
                f"drop={self.drop!r} has no meaning beside a schema; leave those columns out of the schema"
            )
        return schema.with_fixed(self.immutable)

    def _given_schema(self) -> Schema:
        if isinstance(self.schema, Schema):
            return self.schema
        return Schema.from_dict(self.schema) if isinstance(self.schema, dict) else Schema.load(Path(self.schema or ""))

    def _refuse_collisions(self, schema: Schema) -> None:
        taken = {self.prefix + name for name in OWN_COLUMNS}
        for name in schema.names:
            if name in taken:
                raise InputError(
                    f"the feature {name!r} has the name of a column of the answer; rename it, or give the answer's "
                    "columns a prefix (prefix='cf_'; on the command line --prefix cf_)"
                )

    @staticmethod
    def _validation(codec: Codec, table: Any) -> tuple[Rows, NDArray[np.int64]]:
        encoded = codec.encode(table)
        if encoded.bad.any():
            row = int(np.flatnonzero(encoded.bad)[0])
            raise InputError(f"validation table, row {row}: {encoded.reasons[row]}")
        return encoded.rows, codec.labels(table)

    def _learn_favourable(self, X: Rows) -> None:
        model = self.method_.classifier_
        chosen = X[model.predict_proba(X)[:, 1] > 0.5]
        rows = chosen if len(chosen) else X
        # a classifier without a density of its rows leaves the plans' plausibility open
        densities = model.score_samples(rows) if hasattr(model, "score_samples") else np.zeros(0)
        self.favourable_rows_ = FavourableRows.of(rows, densities, self.codec_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "method_"):
            raise NotFittedError("this TabularExplainer is not fitted yet; call fit(table) first, or load a model")

    # predicting

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Class probabilities: (unfavourable, favourable), one line a row."""
        self._check_fitted()
        encoded = self.codec_.encode(table)
        if encoded.bad.any():
            row = int(np.flatnonzero(encoded.bad)[0])
            raise InputError(f"row {row}: {encoded.reasons[row]}")
        return np.asarray(self.method_.classifier_.predict_proba(encoded.rows))

    def predict(self, table: Any) -> NDArray[Any]:
        """The label that the classifier gives each row."""
        favourable = self.predict_proba(table)[:, 1] > 0.5
        return np.array(self.schema_.labels)[favourable.astype(int)]

    # explaining

    def explain(
        self,
        table: Any,
        k: int = 1,
        immutable: Sequence[str] = (),
        constraints: None = None,
        seed: int = 0,
        deadline: None = None,
    ) -> Answer:
        """Find up to ``k`` plans for each row of a table.

        ``immutable`` adds to the features that the schema fixes. A row that cannot be read is answered with the
        status ``bad_input`` and the reason; the others are answered all the same.
        """
        self._check_fitted()
        for name, value in (("constraints", constraints), ("deadline", deadline)):
            if value is not None and value != []:
                raise InputError(f"{name}= is not supported by this version; leave it out")
        seed = _seed(seed)
        fixed = self.codec_.layout.named(_names(immutable, "immutable"))
        encoded = self.codec_.encode(table)
        good = np.flatnonzero(~encoded.bad)
        found = self.method_.explain(encoded.rows[good], 1, fixed=fixed, k=k, seed=seed)
        writer = AnswerWriter(self.codec_, self.method_.classifier_, self.favourable_rows_, self.prefix)
        return writer.write(table, encoded, good, found)

    # saving

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted explainer to one file: safetensors and a JSON manifest with versions and checksums."""
        self._check_fitted()
        inner = self.method_.state()
        values = {
            "label": self.label,
            "favourable": self.favourable,
            "method": self.method,
            "immutable": list(self.immutable),
            "scaling": self.scaling,
            "seed": self.seed,
            "drop": list(self.drop),
            "prefix": self.prefix,
            "hyper_parameters": self.hyper_parameters,
            "codec": self.codec_.to_dict(),
            "state": inner.values,
        }
        arrays = {**{f"method.{k}": v for k, v in inner.arrays.items()}}
        favourable = self.favourable_rows_
        arrays |= {"log_densities": favourable.log_densities, "distributions": favourable.distributions}
        write_artefact(path, State(arrays, values))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "TabularExplainer":
        """Read what :meth:`save` wrote; a damaged or foreign file is refused."""
        saved = read_artefact(path)
        values = dict(saved.values)
        try:
            codec, state = Codec.from_dict(values.pop("codec")), values.pop("state")
            hyper_parameters = values.pop("hyper_parameters")
            explainer = cls(**values, **hyper_parameters)
            arrays = {k.removeprefix("method."): v for k, v in saved.arrays.items() if k.startswith("method.")}
            method = explainer._new_method()
            method.restore(State(arrays, state), codec.layout)
            favourable = FavourableRows(saved.arrays["log_densities"], saved.arrays["distributions"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtefactError(f"{path} is not a model that this version can read ({error}); fit it again") from error
        explainer.codec_, explainer.schema_, explainer.method_ = codec, codec.schema, method
        explainer.favourable_rows_ = favourable
        return explainer


def _plain(value: Any) -> Any:
    """A numpy scalar or array as the Python value that can be written to a file."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{what}={value!r} must be text")
    return value


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be a whole number from 0 to 4294967295")
    return int(seed)


def _by_class(weights: dict[Any, float], labels: tuple[Level, Level]) -> dict[int, float]:
    by_class = {find_level(labels, label): weight for label, weight in weights.items()}
    if set(by_class) != {0, 1}:
        raise InputError(f"class_weight={weights!r} must give each of the labels {listed(labels)} a weight")
    return {int(code): weight for code, weight in by_class.items() if code is not None}


def _names(names: Sequence[str] | None, what: str) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str):
        raise InputError(f"{what}={names!r} is a text; give a list of column names: {what}=({names!r},)")
    return tuple(names)
