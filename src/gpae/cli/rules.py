"""``--rule``: what plans must obey, from the command line or a file."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpae.errors import InputError

__all__ = ["read_rules"]


def read_rules(given: Iterable[str]) -> list[Any]:
    """Read rules: each a rule between numbers, a JSON object, or the name of a JSON or YAML file with a list of them.

    Examples
    --------
    >>> read_rules(["debt <= 0.4 * income", '{"kind": "at_most", "changes": 2}'])
    ['debt <= 0.4 * income', {'kind': 'at_most', 'changes': 2}]
    """
    rules: list[Any] = []
    for text in given:
        if text.endswith((".json", ".yaml", ".yml")):
            rules += _file(Path(text))
        elif text.lstrip().startswith("{"):
            rules.append(_object(text))
        else:
            rules.append(text)
    return rules


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(f"--rule {text!r} is no JSON object: {error}") from None


def _file(path: Path) -> list[Any]:
    import yaml

    if not path.is_file():
        raise InputError(f"--rule {str(path)!r}: there is no such file")
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a list of rules: {error}") from None
    if not isinstance(read, list):
        raise InputError(f"{path} must hold a list of rules, not a {type(read).__name__}")
    return read
