"""Rules between numbers: a weighted sum of features is bounded, ``debt <= 0.4 * income``."""

import ast
import re
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from gpae.errors import InputError
from gpae.table.constraint import Array, Constraint, Mask, Sums, is_number, judged, position

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["SLACK", "Linear"]

SLACK = 1e-9
"""Relative to the size of the terms: what sums of decimals lose."""
_QUOTED = re.compile(r"`([^`]+)`")
_RELATIONS = {ast.LtE: "at_most", ast.GtE: "at_least", ast.Eq: "equal"}


class Linear(Constraint):
    """A weighted sum of numbers is at most, at least or exactly some number.

    It does not apply to a person of whom one of the numbers is missing or a code, as long as that stays so. A second
    sum, ``positive``, must be above ``beyond``: what a ratio is divided by.

    Examples
    --------
    >>> Linear.parse("debt <= 0.4 * income").terms
    {'debt': 1.0, 'income': -0.4}
    >>> Linear.parse("`total debt` = rent + food").words()
    'total debt - rent - food = 0'
    >>> Linear.parse("debt / income <= 0.4").words()
    'debt - 0.4 income <= 0 with income > 0'
    """

    kind: Literal["linear"] = "linear"
    terms: dict[str, Annotated[FiniteFloat, Field()]] = Field(min_length=1)
    at_most: FiniteFloat | None = None
    at_least: FiniteFloat | None = None
    equal: FiniteFloat | None = None
    positive: dict[str, Annotated[FiniteFloat, Field()]] = Field(default_factory=dict)
    beyond: FiniteFloat = 0.0

    @model_validator(mode="after")
    def _says_something(self) -> "Linear":
        given = [bound for bound in (self.at_most, self.at_least, self.equal) if bound is not None]
        if not given or (self.equal is not None and len(given) > 1):
            raise ValueError("give at_most, at_least or both, or else equal")
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least {self.at_least:g} is above at_most {self.at_most:g}")
        if not any(self.terms.values()):
            raise ValueError("no term has a weight other than 0")
        return self

    @classmethod
    def parse(cls, text: str) -> "Linear":
        """Read a rule such as ``A <= B``, ``A = B + C``, ``A / B >= 2`` or ``2 * A - B <= 10``.

        Names that are no plain words are put between backquotes. A ratio stands alone on its side, against a number;
        what it is divided by must then be above 0.
        """
        quoted: list[str] = []

        def stand_in(match: "re.Match[str]") -> str:
            quoted.append(match.group(1))
            return f"__quoted_{len(quoted) - 1}"

        plain = re.sub(r"(?<![<>=!])=(?!=)", "==", _QUOTED.sub(stand_in, text))
        try:
            tree = ast.parse(plain.strip(), mode="eval").body
        except SyntaxError:
            raise _not_a_rule(text) from None
        if not isinstance(tree, ast.Compare) or len(tree.ops) != 1 or type(tree.ops[0]) not in _RELATIONS:
            raise _not_a_rule(text)
        relation = _RELATIONS[type(tree.ops[0])]
        left, right = tree.left, tree.comparators[0]
        if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Div):
            left, right = right, left
            relation = {"at_most": "at_least", "at_least": "at_most"}.get(relation, relation)
        reader = _Reader(text, quoted)
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Div) and not isinstance(left.right, ast.Constant):
            # A / B <= r is A - r B <= 0 as long as B is above 0
            ratio, divisor = reader.number(right), reader.terms(left.right)
            terms = reader.minus(reader.terms(left.left), reader.scaled(divisor, ratio))
        else:
            terms, divisor = reader.minus(reader.terms(left), reader.terms(right)), {}
        bound = -terms.pop("", 0.0)
        terms = {name: weight for name, weight in terms.items() if weight}
        if not terms:
            raise _not_a_rule(text)
        beyond = -divisor.pop("", 0.0)
        return cls.model_validate({"terms": terms, relation: bound + 0.0, "positive": divisor, "beyond": beyond + 0.0})

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return tuple({**self.terms, **self.positive})

    def check(self, schema: "Schema") -> None:
        """Refuse levels."""
        super().check(schema)
        for name in self.about():
            if not is_number(schema[name]):
                raise InputError(f"the constraint {self.words()!r} needs numbers; {name!r} is {schema[name].kind}")

    def ends(self) -> tuple[float, float]:
        """The least and the largest value of the sum; infinite where there is none."""
        if self.equal is not None:
            return self.equal, self.equal
        low = -np.inf if self.at_least is None else self.at_least
        return low, np.inf if self.at_most is None else self.at_most

    def sums(self, schema: "Schema") -> Sums:
        """The sum, and what it is divided by, if anything."""
        low, high = self.ends()
        rows = [(self.terms, low, high), *([(self.positive, self.beyond, np.inf)] if self.positive else [])]
        weights = [[terms.get(name, 0.0) for name in schema.names] for terms, _, _ in rows]
        return Sums(np.array(weights), np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans lie outside."""
        at = [position(schema, name, self) for name in self.about()]
        applies = np.ones(len(plan), dtype=np.bool_)
        for i in at:
            applies &= judged(schema.features[i], own[:, i], plan[:, i])
        values = np.where(applies[:, None], plan[:, at], 0.0)
        weights, divisor = (np.array([part.get(n, 0.0) for n in self.about()]) for part in (self.terms, self.positive))
        total, (low, high) = values @ weights, self.ends()
        slack = SLACK * np.maximum(1.0, np.abs(values * weights).sum(axis=1))
        broken = (total < low - slack) | (total > high + slack)
        if self.positive:
            broken |= values @ divisor <= self.beyond
        return np.asarray(applies & broken)

    def words(self) -> str:
        """What it says, as part of a sentence."""
        text = _sum_in_words(self.terms)
        divided = f" with {_sum_in_words(self.positive)} > {self.beyond:g}" if self.positive else ""
        if self.equal is not None:
            return f"{text} = {self.equal:g}{divided}"
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} <= {text} <= {self.at_most:g}{divided}"
        relation = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
        return f"{text} {relation}{divided}"


def _sum_in_words(terms: dict[str, float]) -> str:
    text = ""
    for name, weight in terms.items():
        size = "" if abs(weight) == 1 else f"{abs(weight):g} "
        sign = ("- " if weight < 0 else "+ ") if text else ("-" if weight < 0 else "")
        text += f"{' ' if text else ''}{sign}{size}{name}"
    return text


class _Reader:
    """Sums of names from a syntax tree; the constant stands under the empty name."""

    def __init__(self, text: str, quoted: list[str]) -> None:
        self.text = text
        self.quoted = quoted

    def terms(self, node: ast.expr) -> dict[str, float]:
        match node:
            case ast.Constant(value=int() | float() as number):
                return {"": float(number)}
            case ast.Name(id=name):
                known = re.fullmatch(r"__quoted_(\d+)", name)
                return {self.quoted[int(known.group(1))] if known else name: 1.0}
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.scaled(self.terms(inner), -1.0)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.minus(self.terms(left), self.scaled(self.terms(right), -1.0))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.minus(self.terms(left), self.terms(right))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                one, other = self.terms(left), self.terms(right)
                one, other = (one, other) if set(one) <= {""} else (other, one)
                if set(one) <= {""}:
                    return self.scaled(other, one.get("", 0.0))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                divisor = self.number(right)
                if divisor:
                    return self.scaled(self.terms(left), 1.0 / divisor)
        raise _not_a_rule(self.text)

    def number(self, node: ast.expr) -> float:
        terms = self.terms(node)
        if not set(terms) <= {""}:
            raise _not_a_rule(self.text)
        return terms.get("", 0.0)

    @staticmethod
    def scaled(terms: dict[str, float], factor: float) -> dict[str, float]:
        return {name: weight * factor for name, weight in terms.items()}

    @staticmethod
    def minus(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
        return {name: one.get(name, 0.0) - other.get(name, 0.0) for name in {**one, **other}}


def _not_a_rule(text: str) -> InputError:
    return InputError(
        f"{text!r} is no rule between numbers; write one like 'debt <= 0.4 * income', 'total = rent + food' or "
        "'debt / income <= 0.4', names with spaces or hyphens between backquotes"
    )
