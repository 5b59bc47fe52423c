"""The schema as a table of a page: feature, kind, range, and how it may change."""

from gpae.plots.numbers import number
from gpae.report.html import Html, join, paragraph, table
from gpae.table.schema import Change, Continuous, Feature, Integer, Schema

__all__ = ["schema_table"]

_MAY_CHANGE = {Change.any: "either way", Change.up: "only up", Change.down: "only down", Change.fixed: "no"}
_MOST_LEVELS = 8


def schema_table(schema: Schema) -> Html:
    """Return what the explainer took each column to be."""
    words = (
        f"What each column was taken to be. The label is {schema.label}; the favourable value is "
        f"{schema.favourable}. Plans stay inside these ranges and change only what may change."
    )
    rows = [(f.name, f.kind, _values(f), _may_change(f)) for f in schema.features]
    return join([paragraph(words), table("Features", ("feature", "kind", "values", "may change"), rows)])


def _values(feature: Feature) -> str:
    missing = " or missing" if feature.missing else ""
    if isinstance(feature, Continuous | Integer):
        step = f" in steps of {number(feature.step)}" if feature.step not in (None, 1) else ""
        codes = "".join(f" or {number(code)}" for code in feature.codes)
        return f"{number(feature.minimum, 6)} to {number(feature.maximum, 6)}{step}{codes}{missing}"
    joint = " < " if feature.kind == "ordinal" else ", "
    shown = joint.join(str(level) for level in feature.levels[:_MOST_LEVELS])
    more = len(feature.levels) - _MOST_LEVELS
    return f"{shown}{f' and {more} more' if more > 0 else ''}{missing}"


def _may_change(feature: Feature) -> str:
    if feature.change is Change.any and not isinstance(feature, Continuous | Integer):
        return "yes"
    return _MAY_CHANGE[feature.change]
