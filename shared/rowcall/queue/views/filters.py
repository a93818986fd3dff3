"""Filters: the criteria for runs, in a list or an operation.

Each filter is declared once, here: the API's query, the command line's options and the SQL condition follow from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import Field, asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from rowcall.base.database import Connection, fetch_all
from rowcall.base.errors import FilterInvalid, TooManySearches
from rowcall.base.jsonb import size_of, stored
from rowcall.base.timestamps import in_utc, unusable
from rowcall.status import Status

# Limits of the payload to search for.  PostgreSQL compares each of its values with every run's payload, and one
# comparison cannot be interrupted: 48 KB against 64 KB takes ten seconds, 2 KB against 64 KB a seventh of a second.
SOUGHT_MOST = 50
SOUGHT_BYTES = 2048


class Form(StrEnum):
    """The form of a filter's value; each has the name of a PostgreSQL type."""

    STATUSES = "text[]"
    TEXT = "text"
    TIME = "timestamptz"
    OBJECT = "jsonb"


def declared(form: Form, condition: str, description: str) -> Any:
    """Declare a filter: the form of its value, its condition on a row of job_runs, and its description."""
    known = {"form": form, "condition": condition, "description": description}
    return field(default=() if form is Form.STATUSES else None, metadata=known)


# The runs that answered requests with this idempotency key, because they held the natural key.
REMEMBERED = "SELECT run_id FROM rowcall.request_keys WHERE idempotency_key = %(key)s"


@dataclass(frozen=True)
class Filter:
    """Criteria for runs; None, or an empty value, matches every run.

    Time ranges include `after` and exclude `before`, so adjacent ranges neither overlap nor leave a gap.
    """

    status: tuple[Status, ...] = declared(
        Form.STATUSES, "status = ANY(%(status)s::text[])", "Only runs in one of these statuses."
    )
    job_type: str | None = declared(Form.TEXT, "job_type = %(job_type)s", "Only runs of this job type.")
    queue: str | None = declared(Form.TEXT, "queue = %(queue)s", "Only runs of this queue.")
    definition: str | None = declared(
        Form.TEXT,
        "definition_id = (SELECT id FROM rowcall.job_definitions WHERE name = %(definition)s)",
        "Only runs of the definition with this name.",
    )
    key: str | None = declared(
        Form.TEXT,
        f"(%(key)s IN (idempotency_key, held_key) OR id IN ({REMEMBERED}))",
        "Only runs that were requested with this idempotency key, or that hold this natural key.",
    )
    error_type: str | None = declared(
        Form.TEXT, "error_type = %(error_type)s", "Only runs whose last error has this type."
    )
    created_by: str | None = declared(
        Form.TEXT,
        "%(created_by)s IN (created_by, split_part(created_by, ' (', 1))",
        "Only runs of this caller: api:NAME (all API keys of this name), api:NAME (PREFIX) (one key), or cli:USER.",
    )
    created_after: datetime | None = declared(
        Form.TIME, "created_at >= %(created_after)s", "Only runs created at this time or later."
    )
    created_before: datetime | None = declared(
        Form.TIME, "created_at < %(created_before)s", "Only runs created before this time."
    )
    run_after: datetime | None = declared(
        Form.TIME, "run_at >= %(run_after)s", "Only runs whose run_at is this time or later."
    )
    run_before: datetime | None = declared(
        Form.TIME, "run_at < %(run_before)s", "Only runs whose run_at is before this time."
    )
    finished_after: datetime | None = declared(
        Form.TIME, "finished_at >= %(finished_after)s", "Only runs that finished at this time or later."
    )
    finished_before: datetime | None = declared(
        Form.TIME, "finished_at < %(finished_before)s", "Only runs that finished before this time."
    )
    payload: dict[str, Any] | None = declared(
        Form.OBJECT,
        "payload @> %(payload)s::jsonb",
        f"Only runs whose payload contains this JSON object, of at most {SOUGHT_MOST} values and {SOUGHT_BYTES} bytes.",
    )

    def __post_init__(self) -> None:
        wrong = {name: reason for name, value in vars(self).items() if (reason := _wrong_with(value))}
        if wrong:
            raise FilterInvalid(wrong)
        for spec in fields(self):
            if spec.metadata["form"] is Form.TIME:
                object.__setattr__(self, spec.name, in_utc(getattr(self, spec.name)))

    @property
    def leaves_all_open(self) -> bool:
        """Whether every run matches."""
        return all(value is None or value in ((), [], {}) for value in vars(self).values())

    @property
    def text(self) -> str:
        """Return a string that is the same for equal filters."""
        return json.dumps({**asdict(self), "status": sorted(self.status)}, sort_keys=True, default=str)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of MATCHES."""
        known = {**vars(self), "status": list(self.status) or None}
        return {**known, "payload": None if self.payload is None else stored(self.payload)}


def to_json(criteria: Filter) -> dict[str, Any]:
    """Return the criteria that are given, as JSON."""
    given = {name: value for name, value in vars(criteria).items() if value not in (None, (), {})}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in given.items()}


def from_json(known: dict[str, Any]) -> Filter:
    """Return the filter that `to_json` encoded."""
    forms = {spec.name: spec.metadata["form"] for spec in fields(Filter)}
    values: dict[str, Any] = {
        name: datetime.fromisoformat(value) if forms[name] is Form.TIME else value for name, value in known.items()
    }
    return Filter(**{**values, "status": tuple(map(Status, known.get("status", ())))})


def _all_of(specs: Iterable[Field[Any]]) -> str:
    """Return the conditions of these filters; one that is not given is NULL.

    Parameters reach PostgreSQL as literals, so the planner removes the conditions of the filters that are not given.
    """
    return "\n    AND ".join(
        f"(%({spec.name})s::{spec.metadata['form']} IS NULL OR {spec.metadata['condition']})" for spec in specs
    )


MATCHES = _all_of(fields(Filter))

# For a list, which finds the runs of a key by the indexes of keys; so lists without a key do not read request_keys.
MATCHES_BESIDES_KEY = _all_of(spec for spec in fields(Filter) if spec.name != "key")


def _wrong_with(value: object) -> str | None:
    """Return why this value cannot be searched for, in words that follow the name of the field; otherwise None."""
    if isinstance(value, datetime):
        return unusable(value)
    if not isinstance(value, (str, dict)):
        return None
    if value == "":
        return "is empty: leave it out, or specify a value"
    try:
        text = stored(value)
    except ValueError as error:
        return f"cannot be searched: {error}"
    return _too_much(value, size_of(text)) if isinstance(value, dict) else None


def _too_much(sought: dict[str, Any], size: int) -> str | None:
    if size > SOUGHT_BYTES:
        return f"is {size} bytes; the limit is {SOUGHT_BYTES}: search for fewer fields"
    values = sum(1 for _ in _values_of(sought))
    return f"has {values} values; the limit is {SOUGHT_MOST}: search for fewer" if values > SOUGHT_MOST else None


def _values_of(sought: object) -> Iterator[object]:
    """Yield the innermost values: scalars, and empty objects and lists."""
    found = [sought]
    while found:
        value = found.pop()
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        found += inner
        if not inner:
            yield value


# No index supports a search in payloads, and each may take seconds, so a caller may have only a few at a time.
SEARCHES_AT_ONCE = 2

# Takes the first free slot of a key until the transaction ends, so the limit covers all servers together.
TAKE_SLOT = f"""
SELECT slot FROM generate_series(1, {SEARCHES_AT_ONCE}) AS slot
WHERE pg_try_advisory_xact_lock(hashtextextended('rowcall.search/' || %(key_id)s || '/' || slot, 0)) LIMIT 1
"""


def limit_searches(connection: Connection, criteria: Filter, key_id: int) -> None:
    """Raise TooManySearches if this is a search in payloads and the API key has too many others in progress."""
    if criteria.payload is not None and not fetch_all(connection, TAKE_SLOT, {"key_id": key_id}):
        raise TooManySearches(SEARCHES_AT_ONCE)
