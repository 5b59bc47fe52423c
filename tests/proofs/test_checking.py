"""Proofs that are checked by who did not make them: the program as text, the best row, and rows drawn at random."""

import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from tests.proofs.small_table import EVERY, SCHEMA, allowed, asked
from tests.proofs.test_proofs import columns, labels

from gpae.proofs.affine import Affine, by_linear_program
from gpae.proofs.certificate import Certificate, plain_row
from gpae.proofs.challenge import challenged
from gpae.proofs.enumeration import by_every_row
from gpae.proofs.forest import Forest
from gpae.proofs.rules import by_rules
from gpae.proofs.trees import ForestOfFeatures, by_trees

TERM = re.compile(r"([+-]?) ?([\d.e+-]+) (x\d+|one)")


def terms(text: str) -> dict[str, float]:
    return {name: float(size) * (-1 if sign == "-" else 1) for sign, size, name in TERM.findall(text)}


def solved(text: str) -> float:
    """The largest value of a program that was read from text, by someone who knows the format alone."""
    text = text.replace("\n  ", " ")
    goal, rest = text.split("Maximize\n")[1].split("Subject To\n")
    rows, rest = rest.split("Bounds\n")
    bounds, rest = rest.split("General\n")
    limits = dict(re.findall(r"(\S+ <= x\d+ <= \S+)()", bounds))
    ends = {part.split(" <= ")[1]: [float(part.split(" <= ")[0]), float(part.split(" <= ")[2])] for part in limits}
    ends["one"] = [1.0, 1.0]
    names = list(ends)
    whole = set(rest.split("End")[0].split())
    matrix, low, high = [], [], []
    for line in rows.strip().splitlines():
        left, relation, right = re.fullmatch(r" ?\S+: (.*) (>=|<=) (\S+)", line).groups()  # type: ignore[union-attr]
        matrix.append([terms(left).get(name, 0.0) for name in names])
        low.append(float(right) if relation == ">=" else -np.inf)
        high.append(float(right) if relation == "<=" else np.inf)
    found = milp(
        [-terms(goal.split(": ")[1]).get(name, 0.0) for name in names],
        integrality=[int(name in whole) for name in names],
        bounds=Bounds(*np.array(list(ends.values())).T),
        constraints=LinearConstraint(np.array(matrix), low, high),
        options={"mip_rel_gap": 0.0},
    )
    return -np.inf if found.status == 2 else float(-found.fun)


def checked(proof: Certificate) -> None:
    """Solve the program of a proof again; its largest value is the proof's, and not above what is needed."""
    assert proof.program is not None
    text = proof.program()
    error, needed = map(float, re.findall(r"plus (\S+) is not above (\S+)", text)[0])
    assert needed == proof.needed
    assert solved(text) + error <= needed
    if "best_row" in proof.details:
        assert solved(text) + error == pytest.approx(proof.best, abs=1e-6)


@pytest.fixture(scope="module")
def linear() -> Any:
    return LogisticRegression(C=3.0).fit(columns(EVERY), labels(1))


STRICT = [{"kind": "at_most", "changes": 1}, "debt <= income"]


def test_the_program_of_a_linear_proof_can_be_solved_by_others_and_its_best_row_asked_about(linear: Any) -> None:
    def logits(values: np.ndarray) -> np.ndarray:
        return np.asarray(linear.decision_function(columns(values)))

    affine = Affine.probed(logits, SCHEMA, EVERY)
    assert affine is not None
    proofs = 0
    for person in EVERY[::31]:
        free, layout = asked(STRICT, person)
        proof, _ = by_linear_program(free, affine, 0.0, 10.0)
        if proof is None or not np.isfinite(proof.best):
            continue
        proofs += 1
        checked(proof)
        best = [None if np.isnan(v) else v for v in allowed(free, layout)[logits(allowed(free, layout)).argmax()]]
        row = proof.details["best_row"]
        assert [row["age"], row["debt"], row["income"]] == best[:3]
        assert proof.best == pytest.approx(logits(allowed(free, layout)).max(), abs=1e-6)
    assert proofs > 3


def test_the_program_of_a_proof_about_trees_can_be_solved_by_others() -> None:
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(columns(EVERY), labels(2))
    forest = Forest.of(model, columns(EVERY), 1)
    assert forest is not None
    trees = ForestOfFeatures.probed(forest, columns, SCHEMA, EVERY)
    assert trees is not None
    proofs = 0
    for person in EVERY[::97]:
        proof, _ = by_trees(asked(STRICT, person)[0], trees, 10.0)
        if proof is not None and np.isfinite(proof.best):
            proofs += 1
            checked(proof)
    assert proofs > 3


def test_rules_that_leave_no_row_leave_none_to_others_either() -> None:
    free, _ = asked(["debt >= income + 9", {"kind": "fixed", "features": ["job"]}], np.array([20.0, 0, 1, 0, 0]))
    proof, _ = by_rules(free, 10.0)
    assert proof is not None
    assert proof.program is not None
    assert solved(proof.program()) == -np.inf


def test_the_best_of_all_rows_is_named(linear: Any) -> None:
    free, layout = asked(STRICT, EVERY[5])
    proof, _ = by_every_row(free, lambda people, U: linear.decision_function(columns(people.values(U))), needed=100.0)
    assert proof is not None
    every = allowed(free, layout)
    best = every[linear.decision_function(columns(every)).argmax()]
    assert proof.details["best_row"] == plain_row(free, layout.encode(best[None]))
    assert proof.looked_at == len(every)


def test_a_challenge_meets_every_row_of_a_small_table_and_refutes_what_is_false() -> None:
    free, layout = asked([{"kind": "at_most", "changes": 2}], EVERY[5])
    every = allowed(free, layout)

    def logits(people: Any, person: np.ndarray, U: np.ndarray) -> np.ndarray:
        return people.values(U, person)[:, 0] - 22.0

    found = challenged(free, logits, 5.0, 3000, seed=0)
    assert found["holds"]
    assert found["best"] == every[:, 0].max() - 22.0
    assert found["best_row"]["age"] == every[:, 0].max()
    assert found["asked"] > 1000
    assert not challenged(free, logits, 1.0, 3000, seed=0)["holds"]


def test_a_challenge_draws_only_rows_that_are_allowed() -> None:
    rules = ["debt <= income", {"kind": "transitions", "feature": "degree", "allowed": {"school": ["master"]}}]
    free, _ = asked(rules, np.array([22.0, 2, 3, 0, 1]))
    drawn = []

    def logits(people: Any, person: np.ndarray, U: np.ndarray) -> np.ndarray:
        drawn.append(U)
        return np.zeros(len(U))

    challenged(free, logits, 0.0, 2000, seed=1)
    (U,) = drawn
    assert len(U) > 500
    assert free.rows(np.zeros(len(U), dtype=np.intp)).permits(U).all()
    assert len(np.unique(U, axis=0)) > 50
