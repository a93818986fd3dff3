"""Sparse responses: with `fields=status,queue`, a response has only these fields and those that identify it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flask


def choose(names: frozenset[str], always: frozenset[str]) -> None:
    """Reduce the response to these fields and those of `always`; without names, it keeps all fields."""
    flask.g.chosen, flask.g.always = names, always


def chosen() -> frozenset[str]:
    """Return the fields that this request has chosen."""
    names: frozenset[str] = flask.g.get("chosen", frozenset())
    return names


def sparse(answer: Any) -> Any:
    """Return a response, or a page of entries, with the chosen fields."""
    if not chosen() or not isinstance(answer, dict):
        return answer
    if "items" in answer:
        return {**answer, "items": [_picked(item) for item in answer["items"]]}
    return _picked(answer)


def _picked(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name in chosen() | flask.g.always}
