"""How a worker serves: a line of JSON asks for rows by a method, a line of JSON answers."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd

__all__ = ["Answer", "Row", "serve"]

Row = dict[str, Any]
"""An answer: a value for each column."""
Answer = Callable[[str, pd.DataFrame], tuple[list[Row | None], float]]
"""(method, queries) -> an answer a row, None where there is none, and the seconds that finding them took."""


def serve(queries: pd.DataFrame, answer: Answer) -> None:
    """Answer until nobody asks any more; what a library prints goes to the log, that is, to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _say(replies, {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        answers, seconds = _in_time(asked, queries, answer)
        found = sum(one is not None for one in answers)
        told = {"asked": len(answers), "answered": found, "answers": answers[: asked["tell"]]}
        _say(replies, told | {"seconds": seconds})


def _in_time(asked: dict[str, Any], queries: pd.DataFrame, answer: Answer) -> tuple[list[Row | None], float]:
    """Answers batch by batch; none is begun after the limit."""
    answers: list[Row | None] = []
    seconds, rows, batch = 0.0, asked["rows"], asked["batch"]
    for start in range(0, len(rows), batch):
        part, took = answer(asked["method"], queries.iloc[rows[start : start + batch]])
        answers += part
        seconds += took
        if asked["limit"] is not None and seconds >= asked["limit"]:
            break
    return answers, seconds


def _say(replies: Any, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message, default=_plain) + "\n")
    replies.flush()


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    return value.item()
