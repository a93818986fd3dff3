"""Rows of the audit log for a screen: what was changed, with a link to it, and the fields that differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flask

from rowcall.access.page_views import LEFT_OUT
from rowcall.base.database import Connection, Row
from rowcall.queue.views.audit import AuditFilter, AuditPage, list_audit

SHOWN_MOST = 50

# A longer value is cut; the API and `rowcall audit --json` show all of it.
VALUE_CHARACTERS = 300


@dataclass(frozen=True)
class Difference:
    """One field before and after a change; None where the field did not exist."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Entry:
    """One change: the row, the name of what was changed, the address of its screen if it has one, and the fields."""

    row: Row
    name: str
    href: str | None
    differences: Sequence[Difference]


def entries(connection: Connection, criteria: AuditFilter, cursor: str | None) -> tuple[list[Entry], str | None]:
    """Return the newest changes that match, and the cursor of the next page."""
    page: AuditPage = list_audit(connection, criteria, SHOWN_MOST, cursor)
    return [_entry(row) for row in page.rows], page.next


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Difference]:
    """Return the fields that a change has added, removed or changed, in their original order."""
    old, new = before or {}, after or {}
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [Difference(name, _text(old, name), _text(new, name)) for name in changed]


def _entry(row: Row) -> Entry:
    name, href = _subject(row)
    return Entry(row, name, href, differences(row["before"], row["after"]))


def _subject(row: Row) -> tuple[str, str | None]:
    """Return the name of what was changed, and where it is shown; what was removed is no longer shown."""
    subject, number, name = row["subject"], row["subject_id"], row["subject_name"]
    told = {**(row["before"] or {}), **(row["after"] or {})}
    if name is not None:
        return f"{subject} {name}", None if row["action"] == "remove" else _address(subject, name, told)
    if number is None:
        return subject, None
    if subject == "effect" and "kind" in told:
        return f"{told['kind']} {number}", flask.url_for("page.effect", kind=told["kind"], effect_id=number)
    if subject == "key":
        return f"key {number}", f"{flask.url_for('page.keys')}#key-{number}"
    if subject == "run":
        return f"run {number}", flask.url_for("page.run", run_id=number)
    if subject == "operation":
        return f"operation {number}", flask.url_for("page.operation", operation_id=number)
    return f"{subject} {number}", None


def _address(subject: str, name: str, told: Mapping[str, Any]) -> str | None:
    """Return the address of something that has a name; a view has none if the log keeps only a part of its filters."""
    if subject == "view":
        return None if f"={LEFT_OUT}" in told["query"] else f"{flask.url_for('page.runs')}?{told['query']}"
    return flask.url_for(f"page.{subject}", name=name)


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    if name not in fields:
        return None
    value = fields[name]
    text = "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"
