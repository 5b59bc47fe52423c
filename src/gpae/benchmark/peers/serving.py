"""How a worker serves: a line of JSON asks for rows by a method, a line of JSON answers.

This file is also read by the peers' own Python, which knows nothing of gpae.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd

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
        answers, seconds = answer(asked["method"], queries.iloc[asked["rows"]])
        _say(replies, {"answers": answers, "seconds": seconds})


def _say(replies: Any, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message, default=_plain) + "\n")
    replies.flush()


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    return value.item()
