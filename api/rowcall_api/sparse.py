"""Sparse answers: with `fields=status,queue`, an answer has only these fields and the id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flask

# Every answer has it, so that a caller knows what the others are about.
ALWAYS = "id"


def choose(names: frozenset[str]) -> None:
    """Let the answer to this request have only these fields; all, if there are none."""
    flask.g.chosen = names


def chosen() -> frozenset[str]:
    """Return the fields that this request has chosen."""
    names: frozenset[str] = flask.g.get("chosen", frozenset())
    return names


def sparse(answer: Any) -> Any:
    """Return an answer, or a page of them, with the chosen fields."""
    if not chosen() or not isinstance(answer, dict):
        return answer
    if "items" in answer:
        return {**answer, "items": [_picked(item) for item in answer["items"]]}
    return _picked(answer)


def _picked(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name == ALWAYS or name in chosen()}
