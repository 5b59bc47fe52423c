"""TabularExplainer: tables in, tables out, a method in between."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from gpae.answer import OWN_COLUMNS, Answer
from gpae.answer_writer import AnswerWriter
from gpae.arguments import a_count, a_margin, a_seed, a_share, a_text, names, plain
from gpae.arrays import Rows
from gpae.artefact import State, read_artefact, write_artefact
from gpae.clock import Deadline
from gpae.errors import ArtefactError, InputError, one_of
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.learnt import Learnt
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.surrogate import Fidelity
from gpae.plan_finder import Asked
from gpae.relaxation import Question, explained_refusals
from gpae.search.worth import TASTES, Preference, Taste
from gpae.table.codec import Codec, Encoded
from gpae.table.constraint import Constraint
from gpae.table.constraints import read_constraints
from gpae.table.frames import frame_kind, has_column, to_arrow
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

    learnt_: Learnt

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
        self.favourable = plain(favourable)
        self.method = EXPLAINERS.resolve(a_text(method, "method"))
        self.schema = schema
        self.immutable = names(immutable, "immutable")
        one_of("scaling", scaling, ("minmax", "robust", "quantile"))
        self.scaling: ScalingName = scaling
        self.seed = a_seed(seed)
        self.drop = names(drop, "drop")
        self.prefix = a_text(prefix, "prefix")
        self.hyper_parameters = {name: plain(value) for name, value in hyper_parameters.items()}
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
        method = self._new_method(codec.schema.labels)
        self.learnt_ = Learnt.from_labels(codec, method, X, y, held_out, self.seed)
        return self

    @classmethod
    def explaining(
        cls, model: Any, train: Any, *, label: str, favourable: Any, validation: Any = None, **options: Any
    ) -> "TabularExplainer":
        """Explain a model that exists already: its own decisions are what plans are searched for and verified on.

        Parameters
        ----------
        model
            A fitted classifier with ``predict_proba``, ``decision_function`` or ``predict`` (a scikit-learn pipeline,
            XGBoost, LightGBM, CatBoost), a torch module of the columns' numbers, or any function of a table that
            returns probabilities of the favourable label, or labels.
        train
            The table that it was fitted on, or one like it. The label column may be missing where a schema with both
            labels is given: what the model says stands in for it.
        validation
            Labelled rows that the model was not fitted to: what plans' probabilities are calibrated on. None: they are
            not calibrated, because rows that a model knows already say nothing about that.
        label, favourable, **options
            As for :class:`TabularExplainer`.
        """
        explainer = cls(label=label, favourable=favourable, **options)
        schema = explainer._schema_for(train)
        explainer._refuse_collisions(schema)
        codec = Codec.fit(train, schema, explainer.scaling)
        labels = codec.labels(train) if has_column(train, codec.schema.label) else None
        method = explainer._new_method(codec.schema.labels)
        learnt = Learnt.from_model(codec, method, model, train, labels, explainer.seed)
        if validation is not None:
            encoded = explainer._readable(codec, validation, "validation table, ")
            learnt = learnt.calibrated_on(encoded, codec.labels(validation))
        explainer.learnt_ = learnt
        return explainer

    @property
    def schema_(self) -> Schema:
        """The features as they were learnt."""
        return self.codec_.schema

    @property
    def codec_(self) -> Codec:
        """How tables are read and written."""
        return self._learnt().codec

    @property
    def method_(self) -> Explainer:
        """The fitted method."""
        return self._learnt().method

    @property
    def fidelity_(self) -> Fidelity | None:
        """How well the surrogate that guides the search knows the model that is explained; None: it is that model."""
        return self._learnt().fidelity

    def _learnt(self) -> Learnt:
        if not hasattr(self, "learnt_"):
            raise NotFittedError("this TabularExplainer is not fitted yet; call fit(table) first, or load a model")
        return self.learnt_

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

    @classmethod
    def _validation(cls, codec: Codec, table: Any) -> tuple[Rows, NDArray[np.int64]]:
        return cls._readable(codec, table, "validation table, ").rows, codec.labels(table)

    @staticmethod
    def _readable(codec: Codec, table: Any, what: str = "") -> Encoded:
        """A table encoded; a row that cannot be is an error."""
        encoded = codec.encode(table)
        if encoded.bad.any():
            row = int(np.flatnonzero(encoded.bad)[0])
            raise InputError(f"{what}row {row}: {encoded.reasons[row]}")
        return encoded

    # predicting

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Class probabilities: (unfavourable, favourable), one line a row."""
        learnt = self._learnt()
        encoded = self._readable(learnt.codec, table)
        favourable = learnt.decides.probability(encoded.rows, encoded.values)
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
        margin: float | None = None,
        survival: float | None = None,
    ) -> Answer:
        """Find up to ``k`` plans for each row of a table.

        Parameters
        ----------
        table
            The people: a row that cannot be read is answered with the status ``bad_input`` and the reason; the others
            are answered all the same. The answer holds all of them, some kilobytes each: give a table that is too
            large for that in portions. What a person gets does not depend on who else is asked about.
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
            ``"plausible"``, ``"near"`` or ``"sparse"`` plans, every change of which is needed. None: one plan by the
            method itself, as long as nothing is asked that it cannot do, and ``"plausible"`` otherwise; GPAE's own
            plan may change more than the decision needs, to end where more people are.
        margin
            Logit units beyond the boundary that every plan must have.
        survival
            The least share of retrained models that must favour every plan too, from 0 to 1.
        """
        learnt, until = self._learnt(), Deadline.after(deadline)
        asked = Asked(a_count(k), a_seed(seed), a_margin(margin), a_share(survival, "survival"), _taste(prefer), until)
        rules = read_constraints(constraints)
        fixed = learnt.codec.layout.named(names(immutable, "immutable"))
        arrow = pa.table(to_arrow(table))  # once, for reading it and for writing the answer
        encoded = learnt.codec.encode(arrow)
        good = np.flatnonzero(~encoded.bad)
        rows, values = encoded.rows[good], encoded.values[good]
        for rule in (*self.schema_.constraints, *rules):
            rule.check_people(len(encoded.bad))
        question = Question(learnt.codec.layout, self.schema_, rules, fixed).of_rows(good)
        freedom = question.freedom(rows, values)
        by_the_method = prefer is None and learnt.given is None and not freedom.constraints and asked.is_plain
        # to write the answer takes about as long as it took to read the question
        asked = replace(asked, deadline=until.earlier(until.since()))
        finder = learnt.finder(asked.survival, quick=deadline is not None)
        known = finder.first_look(freedom, asked.deadline)
        if by_the_method:
            by_itself = self.method_.explain(rows, 1, fixed=fixed, seed=asked.seed)
            known = known.with_found(finder.priced(freedom, by_itself, asked.taste))
        outcome = finder.find(freedom, asked, known).outcome(freedom)
        outcome = explained_refusals(question, freedom, finder, outcome, asked)
        answer = AnswerWriter(learnt, self.prefix, asked).write(arrow, encoded, good, freedom, outcome)
        return replace(answer, kind=frame_kind(table))

    # saving

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted explainer to one file: safetensors and a JSON manifest with versions and checksums.

        A model that was brought to :meth:`explaining` is not in it: keep it as its library does, and give it to
        :meth:`load` again.
        """
        learnt = self._learnt().state()
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
        }
        write_artefact(path, State({}, values).with_part("learnt", learnt))

    @classmethod
    def load(cls, path: str | PathLike[str], model: Any = None) -> "TabularExplainer":
        """Read what :meth:`save` wrote; a damaged or foreign file is refused.

        ``model``: the model that the explainer was made for by :meth:`explaining`, where it was.
        """
        saved = read_artefact(path)
        values = dict(saved.values)
        try:
            values.pop("learnt")
            hyper_parameters = values.pop("hyper_parameters")
            explainer = cls(**values, **hyper_parameters)
            state = saved.part("learnt")
            learnt = Learnt.from_state(state, explainer._new_method())
            speaks = state.values["given"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtefactError(f"{path} is not a model that this version can read ({error}); fit it again") from error
        if speaks and model is None:
            raise InputError(
                f"{path} explains a model that is not in the file; give it: load({str(path)!r}, model=...)"
            )
        if not speaks and model is not None:
            raise InputError(f"{path} explains the classifier that is in the file; load it without model=")
        explainer.learnt_ = learnt.with_given(model, speaks) if speaks else learnt
        return explainer


def _taste(prefer: Any) -> Taste:
    if prefer is None:
        return TASTES["plausible"]
    one_of("prefer", prefer, tuple(TASTES))
    return TASTES[prefer]


def _by_class(weights: dict[Any, float], labels: tuple[Level, Level]) -> dict[int, float]:
    by_class = {find_level(labels, label): weight for label, weight in weights.items()}
    if set(by_class) != {0, 1}:
        raise InputError(f"class_weight={weights!r} must give each of the labels {listed(labels)} a weight")
    return {int(code): weight for code, weight in by_class.items() if code is not None}
