"""Imports for an app's routes: `from rowcall_api.app_routes import Blueprint, needs`.

The blueprints in the app's module `routes` are mounted alongside Rowcall's own.  They use the same keys, rate limits,
checks of bodies and queries, and problem documents, and /openapi.json describes them.  A route without `needs` requires
the scope `admin`.
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
    """An error that a route raises to send this problem document.

    Programs can rely on `type`, so do not change it; `errors` maps each invalid field to what is wrong with it.  If
    the status says enough, raise an exception of Werkzeug instead: `raise NotFound("order 7 does not exist")`.
    """

    def __init__(self, status: int, type: str, detail: str, errors: Mapping[str, object] | None = None) -> None:  # noqa: A002  # as RFC 9457 calls it
        self.status = status
        self.type = type
        self.errors = errors
        super().__init__(detail)
