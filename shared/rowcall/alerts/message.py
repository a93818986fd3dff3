"""Compose the message for one receiver: a subject and a text for people, and the same as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rowcall.alerts.conditions import Alert
from rowcall.alerts.incidents import Change, dead_runs, incidents
from rowcall.alerts.words import Incident, Told, ended, opened
from rowcall.base.database import Connection, Row
from rowcall.effects import EffectKind
from rowcall.job_types.alerting import Message

# If nobody knows whether a message arrived, it is sent again with the same id: a duplicate is better than a lost alert.
ALERT = EffectKind("sent_incidents", policy="at_least_once")

# Mail servers accept longer subjects, but nobody reads them.
SUBJECT_CHARACTERS = 200

# A message describes this many incidents, and counts the others.
TOLD_MOST = 20


def compose(connection: Connection, payload: Mapping[str, Any], environment: str | None, page: str | None) -> Message:
    """Compose the message of a run of send_incidents; `environment` is the name of this installation."""
    changes = {id_: change for change in Change for id_ in payload[change]}
    # What began comes first, also in the subject, because it matters more than what ended; a test matters least.
    rows = sorted(
        incidents(connection, list(changes)),
        key=lambda row: (row["alert"] == Alert.TEST, changes[row["id"]] is Change.ENDED),
    )
    told = [_told(connection, row, changes[row["id"]], page) for row in rows[:TOLD_MOST]]
    left = len(rows) - len(told)
    blocks = ["\n".join([one["title"], *one["lines"]]) for one in told]
    if left:
        blocks.append(f"and {left:,} more: rowcall alerts list")
    where = environment or (rows[0]["database"] if rows else "")
    return Message(_one_line(f"[Rowcall {where}] {_subject(told, left)}"), _printable("\n\n".join(blocks)) + "\n", told)


def _printable(text: str) -> str:
    """Replace control characters: errors may quote a program's coloured output, and emails must not contain any."""
    return "".join(character if character.isprintable() or character in "\n\t" else "?" for character in text)


def _one_line(text: str) -> str:
    """Turn a text into a subject: one short line, whatever names of roles or transactions the text contains."""
    line = _printable(" ".join(text.split()))
    return line if len(line) <= SUBJECT_CHARACTERS else f"{line[: SUBJECT_CHARACTERS - 3]}..."


def _subject(told: Sequence[Mapping[str, Any]], left: int) -> str:
    if not told:
        return "these incidents were deleted before this message was sent"
    first: str = told[0]["title"]
    others = len(told) + left - 1
    return f"{first}, and {others} other alert{'' if others == 1 else 's'}" if others else first


def _told(connection: Connection, row: Row, change: Change, page: str | None) -> dict[str, Any]:
    alert, details = row["alert"], row["details"]
    began = alert == Alert.RUN_DIED and change is Change.OPENED
    runs = dead_runs(connection, details["run_ids"]) if began else []
    incident = Incident(row["subject"], details, runs, page)
    told = opened(alert, incident) if change is Change.OPENED else Told(f"ended: {ended(alert, incident)}", [])
    if change is Change.OPENED and row["ended_at"] is not None:  # the message was late
        told = Told(f"{told.title}; this has already ended", [])
    return {
        "id": row["id"],
        "alert": alert,
        "subject": row["subject"],
        "state": change,
        "title": told.title,
        "lines": [*told.lines, f"Incident {row['id']}, {_since(row)}."],
        "opened_at": row["opened_at"].isoformat(),
        "ended_at": row["ended_at"] and row["ended_at"].isoformat(),
        "details": details,
    }


def _since(row: Row) -> str:
    began = f"since {row['opened_at'].isoformat(sep=' ', timespec='seconds')}"
    if row["ended_at"] is None:
        return began
    return f"{began}, until {row['ended_at'].isoformat(sep=' ', timespec='seconds')}"
