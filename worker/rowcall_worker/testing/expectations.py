"""Expectations about enqueued runs, and the message if they are not met."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import INCLUDE

from rowcall.base.database import Row
from rowcall.job_types import JobType

SHOWN_MOST = 20


def matching(runs: Sequence[Row], job_type: str, payload: Mapping[str, Any] | None, key: str | None) -> list[Row]:
    """The runs of this type with these payload fields, and with this key as one of their keys."""
    return [
        run
        for run in runs
        if run["job_type"] == job_type
        and all(name in run["payload"] and run["payload"][name] == value for name, value in (payload or {}).items())
        and key in (None, run["natural_key"], run["idempotency_key"])
    ]


def refuse_impossible(declared: JobType, payload: Mapping[str, Any] | None, key: str | None) -> None:
    """Refuse an expectation that no run of this type can meet: a misspelt field would make a test pass."""
    if key is not None and not isinstance(key, str):
        raise TypeError(f"a key must be text, not {key!r}")
    schema = declared.schema()
    fields = [field.data_key or name for name, field in schema.fields.items()]
    unknown = sorted(str(name) for name in set(payload or {}) - set(fields))
    if unknown and schema.unknown != INCLUDE:
        raise ValueError(
            f"runs of {declared.name} have no field {unknown[0]!r}; they have: {', '.join(fields) or 'none'}"
        )


def complaint(
    runs: Sequence[Row],
    found: Sequence[Row],
    wanted: str,
    job_type: str,
    payload: Mapping[str, Any] | None,
    key: str | None,
) -> str:
    """The message: what was expected, what was found, and which runs there are."""
    asked = job_type
    asked += f" with {_json(payload)}" if payload is not None else ""
    asked += f" under the key {key!r}" if key is not None else ""
    lines = [_line(run) for run in runs[:SHOWN_MOST]]
    lines += [f"... and {len(runs) - SHOWN_MOST} more"] if len(runs) > SHOWN_MOST else []
    there = "\n  ".join(["there is:", *lines]) if lines else "nothing is enqueued"
    return f"expected {wanted} of {asked}, but found {len(found) or 'none'}; {there}"


def _line(run: Row) -> str:
    keys = [str(run[column]) for column in ("natural_key", "idempotency_key") if run[column] is not None]
    return (
        f"run {run['id']} {run['job_type']} {_json(run['payload'])}"
        + (f" key {', '.join(keys)}" if keys else "")
        + f" ({run['status']})"
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
