"""Imports for an app's routes: `from rowcall_api.app_routes import Blueprint, needs`.

The blueprints of the app's module `routes` are mounted beside Rowcall's own.  Callers show the same keys, within the
same rate limits; bodies and queries are checked in the same way; errors are answered as problem documents; and every
route is described in /openapi.json.  A route that names no scope with `needs` answers only keys with the scope `admin`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall_api.enqueue import Answer, answers_with_a_run, enqueue_and_answer
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint as Blueprint
from rowcall_api.http.database import app_transaction as transaction
from rowcall_api.schemas.runs import EnqueueHeaders

__all__ = [
    "Answer",
    "Blueprint",
    "EnqueueHeaders",
    "Problem",
    "answers_with_a_run",
    "enqueue_and_answer",
    "needs",
    "transaction",
]


class Problem(Exception):
    """Raised by a route: the request is answered with this problem document.

    `type` is stable, and what a program decides by; `errors` says for each wrong field what is wrong with it.  Where
    the type of the status is enough, an exception of Werkzeug's will do: `raise NotFound("there is no order 7")`.
    """

    def __init__(self, status: int, type: str, detail: str, errors: Mapping[str, object] | None = None) -> None:  # noqa: A002  # as RFC 9457 calls it
        self.status = status
        self.type = type
        self.errors = errors
        super().__init__(detail)
