"""Filters: which runs are asked for, in a list or for many at once."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from rowcall.base.errors import FilterInvalid
from rowcall.base.jsonb import stored
from rowcall.queue.timestamps import in_utc, unusable
from rowcall.status import Status

TIMES = ("created_after", "created_before", "run_after", "run_before", "finished_after", "finished_before")


@dataclass(frozen=True)
class Filter:
    """What a run must be like; what is None, or empty, is left open.

    The times reach from `after`, which is included, to `before`, which is not: ranges side by side miss nothing and
    share nothing.  `payload` is what the run's payload must contain.
    """

    status: tuple[Status, ...] = ()
    job_type: str | None = None
    queue: str | None = None
    definition: str | None = None
    key: str | None = None
    error_type: str | None = None
    created_by: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    run_after: datetime | None = None
    run_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    payload: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        wrong = {field.name: said for field in fields(self) if (said := _wrong_with(getattr(self, field.name)))}
        if wrong:
            raise FilterInvalid(wrong)

        for name in TIMES:
            object.__setattr__(self, name, in_utc(getattr(self, name)))

    @property
    def leaves_all_open(self) -> bool:
        """Whether every run matches."""
        return all(value in (None, (), {}) for value in vars(self).values())

    @property
    def text(self) -> str:
        """The same text for the same filter, however it was written."""
        return json.dumps({**asdict(self), "status": sorted(self.status)}, sort_keys=True, default=str)

    def parameters(self) -> dict[str, Any]:
        """As MATCHES takes it."""
        known = {**vars(self), "status": list(self.status) or None}
        return {**known, "payload": None if self.payload is None else stored(self.payload)}


# What is left open is a NULL.  Parameters reach PostgreSQL as literals, so its line is gone before the plan is made.
MATCHES = """
    (%(status)s::text[] IS NULL OR status = ANY(%(status)s::text[]))
    AND (%(job_type)s::text IS NULL OR job_type = %(job_type)s)
    AND (%(queue)s::text IS NULL OR queue = %(queue)s)
    AND (%(definition)s::text IS NULL OR definition_id = (
        SELECT id FROM rowcall.job_definitions WHERE name = %(definition)s))
    AND (%(key)s::text IS NULL OR idempotency_key = %(key)s)
    AND (%(error_type)s::text IS NULL OR error_type = %(error_type)s)
    AND (%(created_by)s::text IS NULL OR created_by = %(created_by)s)
    AND (%(created_after)s::timestamptz IS NULL OR created_at >= %(created_after)s)
    AND (%(created_before)s::timestamptz IS NULL OR created_at < %(created_before)s)
    AND (%(run_after)s::timestamptz IS NULL OR run_at >= %(run_after)s)
    AND (%(run_before)s::timestamptz IS NULL OR run_at < %(run_before)s)
    AND (%(finished_after)s::timestamptz IS NULL OR finished_at >= %(finished_after)s)
    AND (%(finished_before)s::timestamptz IS NULL OR finished_at < %(finished_before)s)
    AND (%(payload)s::jsonb IS NULL OR payload @> %(payload)s::jsonb)"""


def _wrong_with(value: object) -> str | None:
    """Why no run can have this, in the words that follow a field's name; None where some may."""
    if isinstance(value, datetime):
        return unusable(value)
    if isinstance(value, (str, dict)):
        try:
            stored(value)
        except ValueError as error:
            return f"cannot be looked for: {error}"
    return None
