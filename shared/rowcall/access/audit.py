"""The audit log: who changed what, with the state before and after.  Rows are only added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias, get_args

from rowcall.base.database import Connection, fetch_all

# The kinds of things that operators change.
Subject: TypeAlias = Literal["run", "definition", "queue", "key", "effect", "operation", "view", "database"]
SUBJECTS: tuple[str, ...] = get_args(Subject)

REASON_CHARACTERS = 500


@dataclass(frozen=True)
class Operator:
    """An operator, for the audit log; `request_id` connects a change with the log lines of its request.

    `key_owner` owns the idempotency keys of the operator's requests; `reason` is why the operator changes a run.
    """

    who: str
    request_id: str | None = None
    key_owner: str = "cli"
    reason: str | None = None


def wrong_with_reason(reason: str | None) -> str | None:
    """Return what is wrong with a reason, in words that can follow its name; None if it is valid."""
    usable = reason is None or (0 < len(reason) <= REASON_CHARACTERS and reason.isprintable())
    return None if usable else f"must be 1 to {REASON_CHARACTERS} printable characters"


RECORD = """
INSERT INTO rowcall.audit_log (who, action, subject, subject_id, before, after, request_id)
VALUES (%(who)s, %(action)s, %(subject)s, %(subject_id)s, %(before)s::jsonb, %(after)s::jsonb, %(request_id)s)
"""


def record(
    connection: Connection,
    who: str,
    action: str,
    subject: Subject,
    subject_id: int | None,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    request_id: str | None = None,
) -> None:
    """Add one row to the audit log, in the transaction of the change."""
    fetch_all(
        connection,
        RECORD,
        {
            "who": who,
            "action": action,
            "subject": subject,
            "subject_id": subject_id,
            "before": _text(before),
            "after": _text(after),
            "request_id": request_id,
        },
    )


def _text(state: Mapping[str, Any] | None) -> str | None:
    """Return JSON text for jsonb, with times in ISO 8601."""
    return None if state is None else json.dumps(state, default=datetime.isoformat)
