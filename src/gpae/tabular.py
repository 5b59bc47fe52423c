"""TabularExplainer: tables in, tables out, a method in between."""

import inspect
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from gpae.answer import OWN_COLUMNS, Answer
from gpae.arrays import Mask, Rows
from gpae.artefact import State, read_artefact, write_artefact
from gpae.errors import ArtefactError, InputError
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.plots.plan_view import Change as ChangeView
from gpae.plots.plan_view import LevelChange, NumberChange, PlanView
from gpae.results import Counterfactuals, Status
from gpae.table.codec import Codec, Encoded
from gpae.table.frames import frame_kind, to_arrow
from gpae.table.schema import Continuous, Integer, ScalingName, Schema

__all__ = ["TabularExplainer"]

_QUANTILES = 101


class TabularExplainer:
    """Fit a classifier on a table, and tell the people it refuses what would have to change for a yes.

    Parameters
    ----------
    label, favourable
        The label column and the value that a person wants.
    method
        A name of the registry ``gpae.explainer.EXPLAINERS``.
    schema
        None: inferred from the training table; or a :class:`Schema`, or the path of a schema file.
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

    def __init__(
        self,
        *,
        label: str,
        favourable: Any,
        method: str = "gpae",
        schema: Schema | str | PathLike[str] | None = None,
        immutable: Sequence[str] = (),
        scaling: ScalingName = "minmax",
        seed: int = 0,
        drop: Sequence[str] = (),
        prefix: str = "",
        **hyper_parameters: Any,
    ) -> None:
        self.label = label
        self.favourable = favourable
        self.method = EXPLAINERS.resolve(method)
        self.schema = schema
        self.immutable = _names(immutable, "immutable")
        self.scaling: ScalingName = scaling
        self.seed = seed
        self.drop = _names(drop, "drop")
        self.prefix = prefix
        self.hyper_parameters = hyper_parameters
        self._new_method()

    def _new_method(self) -> Explainer:
        """An unfitted method with its share of the hyper-parameters; the classifier gets the rest."""
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
        method = self._new_method().fit(X, y, layout=codec.layout, validation=held_out)
        self.codec_, self.schema_, self.method_ = codec, codec.schema, method
        self._learn_reference(X)
        return self

    def _schema_for(self, train: Any) -> Schema:
        if self.schema is None:
            return Schema.infer(
                train, label=self.label, favourable=self.favourable, immutable=self.immutable, drop=self.drop
            )
        schema = self.schema if isinstance(self.schema, Schema) else Schema.load(Path(self.schema))
        if schema.label != self.label:
            raise InputError(f"the schema's label is {schema.label!r}, but label={self.label!r} was asked for")
        return schema.with_fixed(self.immutable)

    def _refuse_collisions(self, schema: Schema) -> None:
        taken = {self.prefix + name for name in OWN_COLUMNS}
        for name in schema.names:
            if name in taken:
                raise InputError(
                    f"the feature {name!r} has the name of a column of the answer; rename it, or give prefix= "
                    f"(such as prefix='cf_') to name the answer's columns otherwise"
                )

    @staticmethod
    def _validation(codec: Codec, table: Any) -> tuple[Rows, NDArray[np.int64]]:
        encoded = codec.encode(table)
        if encoded.bad.any():
            row = int(np.flatnonzero(encoded.bad)[0])
            raise InputError(f"validation table, row {row}: {encoded.reasons[row]}")
        return encoded.rows, codec.labels(table)

    def _learn_reference(self, X: Rows) -> None:
        """What the favourable rows look like: their log densities, and each feature's distribution."""
        favourable = X[self._probability(X) > 0.5]
        if not len(favourable):
            favourable = X
        self._log_densities = np.sort(self._log_density(favourable))
        layout = self.codec_.layout
        values = layout.to_user(favourable)
        self._reference = np.full((len(layout.features), _QUANTILES), np.nan)
        for i, feature in enumerate(self.schema_.features):
            known = values[~np.isnan(values[:, i]), i]
            if isinstance(feature, Continuous | Integer):
                self._reference[i] = np.quantile(known, np.linspace(0, 1, _QUANTILES)) if len(known) else np.nan
            else:
                shares = np.bincount(known.astype(int), minlength=len(feature.levels)) / max(len(known), 1)
                self._reference[i, : min(len(shares), _QUANTILES)] = shares[:_QUANTILES]

    def _check_fitted(self) -> None:
        if not hasattr(self, "method_"):
            raise NotFittedError("this TabularExplainer is not fitted yet; call fit(table) first, or load a model")

    def _probability(self, X: Rows) -> NDArray[np.float64]:
        return np.asarray(self.method_.classifier_.predict_proba(X)[:, 1])

    def _log_density(self, X: Rows) -> NDArray[np.float64]:
        return np.asarray(self.method_.classifier_.score_samples(X))  # type: ignore[attr-defined]

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
            if value is not None:
                raise InputError(f"{name}= is not supported by this version; leave it out")
        fixed = self.codec_.layout.named(_names(immutable, "immutable"))
        encoded = self.codec_.encode(table)
        good = np.flatnonzero(~encoded.bad)
        found = self.method_.explain(encoded.rows[good], 1, fixed=fixed, k=k, seed=seed)
        return self._answer(table, encoded, _with_bad_rows(found, good, encoded))

    def _answer(self, table: Any, encoded: Encoded, found: Counterfactuals) -> Answer:
        """Write the plans in the user's units, read them back, and judge the rows as written."""
        origin = pa.table(to_arrow(table)).take(pa.array(found.row))
        features = self.codec_.decode(
            found.counterfactual, origin=origin, X=found.factual, kind="pyarrow", null=~found.found
        )
        written, sound = self._read_back(features, found)
        lost = found.found & ~sound
        if lost.any():
            features = self.codec_.decode(
                found.counterfactual, origin=origin, X=found.factual, kind="pyarrow", null=~sound
            )
        status = np.where(lost, Status.NOT_FOUND, found.status)
        own = self._figures(found, encoded, written, sound, status)
        names = {name: self.prefix + name for name in OWN_COLUMNS}
        columns = {names[n]: own[n] for n in OWN_COLUMNS[:4]}
        columns |= dict(zip(features.column_names, features.columns, strict=True))
        columns |= {names[n]: own[n] for n in OWN_COLUMNS[4:]}
        changes = self._changes(origin, features, found, written, sound)
        view = _View(self, origin, features, found, written)
        return Answer(pa.table(columns), changes, frame_kind(table), self.prefix, view)

    def _read_back(self, features: pa.Table, found: Counterfactuals) -> tuple[Rows, Mask]:
        """Encode the plans as written; sound are those that are favourable as they stand in the table."""
        written = np.full_like(found.factual, np.nan)
        at = np.flatnonzero(found.found)
        sound = np.zeros(len(found), dtype=np.bool_)
        if len(at):
            again = self.codec_.encode(features.take(pa.array(at)))
            written[at] = again.rows
            at = at[~again.bad]
            sound[at] = self._probability(written[at]) > 0.5
        return written, sound

    def _figures(
        self, found: Counterfactuals, encoded: Encoded, written: Rows, sound: Mask, status: NDArray[np.str_]
    ) -> dict[str, pa.Array]:
        u, x = written[sound], found.factual[sound]
        log_density = self._log_density(u) if len(u) else np.zeros(0)
        below = np.searchsorted(self._log_densities, log_density, side="right") / len(self._log_densities)
        reasons = [self._reason(str(s), encoded.reasons[r]) for s, r in zip(status, found.row, strict=True)]

        def at_plans(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
            full = np.zeros(len(sound), dtype=values.dtype)
            full[sound] = values
            return pa.array(full, kind, mask=~sound)

        return {
            "row": pa.array(found.row, pa.int64()),
            "plan": pa.array(found.plan, pa.int64()),
            "status": pa.array(status.astype(object), pa.string()),
            "found": pa.array(sound, pa.bool_()),
            "probability": at_plans(self._probability(u) if len(u) else np.zeros(0), pa.float64()),
            "distance": at_plans(np.linalg.norm(u - x, axis=1), pa.float64()),
            "changes": at_plans(self.codec_.layout.n_changes(u, x), pa.int64()),
            "log_density": at_plans(log_density, pa.float64()),
            "plausibility": at_plans(100 * below, pa.float64()),
            "reason": pa.array(reasons, pa.string()),
        }

    def _reason(self, status: str, why_bad: str) -> str:
        if status == Status.BAD_INPUT:
            return why_bad
        if status == Status.ALREADY_FAVOURABLE:
            return f"the model already says {self.schema_.labels[1]!r}"  # type: ignore[index]
        if status == Status.NOT_FOUND:
            return (
                f"no allowed change was found that makes the model say {self.schema_.labels[1]!r}; "  # type: ignore[index]
                "let more features change"
            )
        return ""

    def _changes(
        self, origin: pa.Table, features: pa.Table, found: Counterfactuals, written: Rows, sound: Mask
    ) -> pa.Table:
        """One line a changed feature, before and after as text."""
        changed = np.zeros((len(sound), len(self.schema_.features)), dtype=np.bool_)
        changed[sound] = self.codec_.layout.changed(written[sound], found.factual[sound])
        line, feature = np.nonzero(changed)
        before, after = ([""] * len(line) for _ in range(2))
        for i, name in enumerate(self.schema_.names):
            mine = np.flatnonzero(feature == i)
            for texts, table in ((before, origin), (after, features)):
                for at, cell in zip(mine, table[name].take(pa.array(line[mine])).to_pylist(), strict=True):
                    texts[at] = "missing" if cell is None else str(cell)
        return pa.table(
            {
                "row": pa.array(found.row[line], pa.int64()),
                "plan": pa.array(found.plan[line], pa.int64()),
                "feature": pa.array([self.schema_.names[i] for i in feature], pa.string()),
                "before": pa.array(before, pa.string()),
                "after": pa.array(after, pa.string()),
            }
        )

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
        arrays |= {"log_densities": self._log_densities, "reference": self._reference}
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
            explainer._log_densities, explainer._reference = (
                saved.arrays["log_densities"],
                saved.arrays["reference"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArtefactError(f"{path} is not a model that this version can read ({error}); fit it again") from error
        explainer.codec_, explainer.schema_, explainer.method_ = codec, codec.schema, method
        return explainer


class _View:
    """The picture's view of one line of an answer, made when asked for."""

    def __init__(
        self,
        explainer: TabularExplainer,
        origin: pa.Table,
        features: pa.Table,
        found: Counterfactuals,
        written: Rows,
    ) -> None:
        self._explainer = explainer
        self._origin, self._features = origin, features
        self._found, self._written = found, written

    def __call__(self, line: int) -> PlanView:
        explainer = self._explainer
        x, u = self._found.factual[line : line + 1], self._written[line : line + 1]
        changed = explainer.codec_.layout.changed(u, x)[0]
        below = np.searchsorted(explainer._log_densities, explainer._log_density(u), side="right")
        return PlanView(
            outcome=f"{explainer.schema_.label} {explainer.schema_.labels[1]}",  # type: ignore[index]
            changes=tuple(self._change(line, int(i)) for i in np.flatnonzero(changed)),
            unchanged=tuple(n for n, c in zip(explainer.schema_.names, changed, strict=True) if not c),
            probability_before=float(explainer._probability(x)[0]),
            probability_after=float(explainer._probability(u)[0]),
            plausibility=float(100 * below[0] / len(explainer._log_densities)),
        )

    def _change(self, line: int, i: int) -> ChangeView:
        feature = self._explainer.schema_.features[i]
        before, after = (t[feature.name][line].as_py() for t in (self._origin, self._features))
        reference = self._explainer._reference[i]
        if isinstance(feature, Continuous | Integer):
            start, end = (None if v is None else float(v) for v in (before, after))
            return NumberChange(feature.name, start, end, reference=reference, decimals=feature.decimals)
        shares = {str(level): float(s) for level, s in zip(feature.levels, reference, strict=False)}
        old, new = ("missing" if v is None else str(v) for v in (before, after))
        return LevelChange(feature.name, old, new, shares=shares)


def _names(names: Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InputError(f"{what}={names!r} is a text; give a list of column names: {what}=({names!r},)")
    return tuple(names)


def _with_bad_rows(found: Counterfactuals, good: NDArray[np.intp], encoded: Encoded) -> Counterfactuals:
    """Put the unreadable rows back among the answers, in the order of the query."""
    bad = np.flatnonzero(encoded.bad)
    n, width = len(bad), encoded.rows.shape[1]
    rows = np.concatenate([good[found.row], bad]) if len(found) else bad
    order = np.argsort(rows, kind="stable")

    def joined(mine: NDArray[Any], for_bad: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([mine, for_bad])[order]

    return Counterfactuals(
        row=rows[order],
        plan=joined(found.plan, np.zeros(n, np.int64)),
        factual=joined(found.factual, np.full((n, width), np.nan)),
        counterfactual=joined(found.counterfactual, np.full((n, width), np.nan)),
        target=joined(found.target, np.ones(n, np.int64)),
        found=joined(found.found, np.zeros(n, np.bool_)),
        status=joined(found.status.astype(object), np.full(n, str(Status.BAD_INPUT), dtype=object)).astype(np.str_),
    )
