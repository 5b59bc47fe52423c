"""TabularExplainer: tables in, tables out, a method in between."""

import inspect
from collections.abc import Sequence
from functools import partial
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
from gpae.clock import Deadline
from gpae.errors import ArtefactError, InputError, one_of
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.favourable import FavourableRows
from gpae.models.given_model import GivenModel
from gpae.models.given_provers import provers_of
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.own_model import OwnModel
from gpae.models.surrogate import Fidelity
from gpae.plan_finder import Asked, PlanFinder, Prove
from gpae.proofs.enumeration import by_every_row
from gpae.search.recourse import TASTES, Preference
from gpae.table.codec import Codec
from gpae.table.constraint import Constraint
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.levels import Level, find_level, listed
from gpae.table.schema import ScalingName, Schema
from gpae.table.table_maker import TableMaker

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
    scale_: Rows
    given_: GivenModel | None = None
    """The user's own model, where that is what decides, and"""
    provers_: tuple[Prove, ...] = ()
    fidelity_: Fidelity | None = None
    """how well the surrogate that guides the search knows it."""

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
        self._learn_favourable(X, codec.layout.to_user(X))
        return self

    @classmethod
    def explaining(cls, model: Any, train: Any, *, label: str, favourable: Any, **options: Any) -> "TabularExplainer":
        """Explain a model that exists already: its own decisions are what plans are searched for and verified on.

        Parameters
        ----------
        model
            A fitted classifier with ``predict_proba``, ``decision_function`` or ``predict`` (a scikit-learn pipeline,
            XGBoost, LightGBM, CatBoost), a torch module of the columns' numbers, or any function of a table that
            returns probabilities of the favourable label, or labels.
        train
            The table that it was fitted on, or one like it. The label column may be missing: what the model says
            stands in for it.
        label, favourable, **options
            As for :class:`TabularExplainer`.
        """
        explainer = cls(label=label, favourable=favourable, **options)
        explainer._explain_model(model, train)
        return explainer

    def _explain_model(self, model: Any, train: Any) -> None:
        """Distil a surrogate from what the model says of the training rows, and keep both."""
        schema = self._schema_for(train)
        self._refuse_collisions(schema)
        codec = Codec.fit(train, schema, self.scaling)
        encoded = codec.encode(train)
        assert codec.schema.labels is not None
        given = GivenModel.of(model, TableMaker.like(train, codec.schema), codec.schema.labels)
        scores = given(encoded.values)
        if (scores > 0.5).all() or (scores <= 0.5).all():
            says = codec.schema.labels[int(scores[0] > 0.5)]
            raise InputError(f"the model says {says!r} of every training row; there is nothing to explain")
        method = self._new_method(codec.schema.labels)
        method.set_params(classifier=method.get_params(deep=False)["classifier"].distil(encoded.rows, scores))
        method.fit(encoded.rows, (scores > 0.5).astype(np.int64), layout=codec.layout)
        self.codec_, self.schema_, self.method_, self.given_ = codec, codec.schema, method, given
        self.provers_ = provers_of(model, given, codec.schema, _some(encoded.values), given.favourable)
        self.fidelity_ = Fidelity.of(scores, method.classifier_.predict_proba(encoded.rows)[:, 1])
        self._learn_favourable(encoded.rows, encoded.values)

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

    def _learn_favourable(self, X: Rows, values: Rows) -> None:
        """Keep what the search and the answers need of the training rows that the model favours."""
        layout = self.codec_.layout
        chosen = X[self._decides().probability(X, values) > 0.5]
        rows, density = chosen if len(chosen) else X, self._surrogate()
        # a classifier without a density of its rows leaves the plans' plausibility open
        densities = density.score_samples(rows) if hasattr(density, "score_samples") else np.zeros(0)
        self.favourable_rows_ = FavourableRows.of(rows, densities, self.codec_)
        spread = X.std(axis=0)
        self.scale_ = np.where(layout.continuous & (spread > 0), 1.0 / np.where(spread > 0, spread, 1.0), 1.0)

    def _decides(self) -> OwnModel | GivenModel:
        """The model that decides: the user's, or the one that the method has trained."""
        return self.given_ or OwnModel(self.method_.classifier_)

    def _surrogate(self) -> Any:
        """The classifier that the method has trained."""
        return self.method_.classifier_

    def _finder(self) -> PlanFinder:
        decides = self._decides()
        every = partial(by_every_row, logits=lambda people, U: decides.logits(people, np.arange(len(U)), U))
        return PlanFinder(
            logits=decides.logits,
            favourable=self.favourable_rows_.some,
            scale=self.scale_,
            propose=self.method_.proposals,
            provers=(lambda person, seconds: every(person), *self.provers_),
        )

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
        favourable = self._decides().probability(encoded.rows, encoded.values)
        return np.column_stack([1.0 - favourable, favourable])

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
        constraints: Sequence[Constraint | dict[str, Any] | str] | None = None,
        seed: int = 0,
        deadline: float | None = None,
        prefer: Preference | None = None,
    ) -> Answer:
        """Find up to ``k`` plans for each row of a table.

        Parameters
        ----------
        table
            The people: a row that cannot be read is answered with the status ``bad_input`` and the reason; the others
            are answered all the same.
        k
            Plans for each person; no two of a person's change the same features.
        immutable
            Features that must not change, beside those that the schema fixes.
        constraints
            What plans must obey, beside the schema's: objects, their plain values, or rules such as
            ``"debt <= 0.4 * income"``.
        seed
            Of the draws in a search that has any.
        deadline
            Seconds: who is not answered by then gets the status ``timeout``.
        prefer
            ``"plausible"``, ``"near"`` or ``"sparse"`` plans. None: one plan by the method itself, as long as nothing
            is asked that it cannot do; ``"plausible"`` otherwise.
        """
        self._check_fitted()
        until = Deadline.after(deadline)
        seed = _seed(seed)
        asked = read_constraints(constraints)
        if prefer is not None:
            one_of("prefer", prefer, tuple(TASTES))
        fixed = self.codec_.layout.named(_names(immutable, "immutable"))
        encoded = self.codec_.encode(table)
        good = np.flatnonzero(~encoded.bad)
        rows, values = encoded.rows[good], encoded.values[good]
        freedom = Freedom.of(self.codec_.layout, self.schema_, asked, rows, own=values, fixed=fixed)
        plain = not freedom.constraints and k == 1 and prefer is None and deadline is None and self.given_ is None
        reasons: dict[int, str] = {}
        if plain:
            found = self.method_.explain(rows, 1, fixed=fixed, seed=seed)
        else:
            plans = self._finder().find(freedom, Asked(_count(k), seed, 0.0, TASTES[prefer or "plausible"], until))
            found, reasons = plans.counterfactuals(freedom), plans.reasons
        writer = AnswerWriter(self.codec_, self._decides(), self._surrogate(), self.favourable_rows_, self.prefix)
        return writer.write(table, encoded, good, found, freedom, reasons)

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
        arrays |= {"favourable": favourable.some, "scale": self.scale_}
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
            parts = (saved.arrays[name] for name in ("log_densities", "distributions", "favourable"))
            favourable = FavourableRows(*parts)
            scale = saved.arrays["scale"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtefactError(f"{path} is not a model that this version can read ({error}); fit it again") from error
        explainer.codec_, explainer.schema_, explainer.method_ = codec, codec.schema, method
        explainer.favourable_rows_, explainer.scale_ = favourable, scale
        return explainer


def _plain(value: Any) -> Any:
    """A numpy scalar or array as the Python value that can be written to a file."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _some(values: Rows, most: int = 500) -> Rows:
    """Rows spread evenly over a table."""
    return values[np.linspace(0, len(values) - 1, min(most, len(values))).astype(int)]


def _count(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k is {k!r}: ask for a whole number of plans")
    if k < 1:
        raise InputError(f"k is {k}: ask for at least one plan")
    return int(k)


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
