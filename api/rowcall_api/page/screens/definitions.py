"""Definitions: the list, and one with its next times, its last occurrences, a preview and its buttons."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import flask

from rowcall import definitions
from rowcall.base.database import Connection, Row
from rowcall.base.errors import ScheduleInvalid
from rowcall.definitions import Content, Precondition, in_words, preview
from rowcall.job_types import catalogue
from rowcall.queue.views import cursors
from rowcall.queue.views.inspect import states_of
from rowcall.schedule import Outcome
from rowcall_api.http.auth import operator
from rowcall_api.http.database import transaction
from rowcall_api.page import access, words
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import (
    may_change_definition,
    may_run_definition,
    must_be_allowed_to_change_definition,
    must_be_allowed_to_enqueue,
)
from rowcall_api.routes.definitions import previewed
from rowcall_api.standby.requests import standby_may_answer

# How many nominal times are shown: upcoming, past, and in a preview.
COMING, PAST, PREVIEWED = 5, 30, 50

EVENTS = {"pause": definitions.pause, "resume": definitions.resume}

# What the screen calls an occurrence, in place of its outcome, if an outage delayed its run.
LATE = "late"


@dataclass(frozen=True)
class Preview:
    """What the form of the preview asks for, the nominal times, and what is wrong with a field."""

    asked: dict[str, str]
    shown: list[preview.Shown] | None
    wrong: dict[str, str]
    more: bool = False


@blueprint.get("/definitions", endpoint="definitions")
@standby_may_answer
@access.only_for("read")
def show_all() -> str:
    """Show the definitions by name, and why some are overdue."""
    cursor = flask.request.args.get("cursor")
    page = part(_page, 0 if cursor is None else cursors.read("definitions", cursor)[0])
    return flask.render_template("rowcall_page/definitions.html", page=page)


@blueprint.get("/definitions/<name>")
@access.only_for("read")
def definition(name: str) -> str:
    """Show one definition."""
    row = at_once(definitions.get_definition, name)
    content = Content.of(row)
    paused = row["paused_at"] is not None
    return flask.render_template(
        "rowcall_page/definition.html",
        room="page.definitions",
        row=row,
        content=in_words(definitions.as_sent(content)),
        coming=preview.coming(preview.Previewed(name, content, paused), words.now(), COMING),
        preview=_previewed(row),
        past=part(_past, row["id"]),
        overdue=part(_overdue, row),
        version=definitions.version_of(row),
        may_switch=access.may_change() and may_change_definition(row),
        may_run=access.may_change() and part(may_run_definition, row).value,
        # Ensures that a form that is sent twice enqueues one run.
        once=secrets.token_hex(8),
    )


@blueprint.post("/definitions/<name>/<any('pause', 'resume'):event>")
@access.only_for("operate")
def switch(name: str, event: str) -> flask.typing.ResponseReturnValue:
    """Pause or resume a definition, unless it has changed since the screen was shown."""
    with transaction() as connection:
        must_be_allowed_to_change_definition(connection, name)
        EVENTS[event](connection, name, catalogue(), operator(), _condition())
    return flask.redirect(flask.url_for("page.definition", name=name, done=event), 303)


@blueprint.post("/definitions/<name>/run-now")
@access.only_for("operate")
def run_definition(name: str) -> flask.typing.ResponseReturnValue:
    """Enqueue one run of a definition now."""
    with transaction() as connection:
        content = Content.of(definitions.get_definition(connection, name))
        must_be_allowed_to_enqueue(connection, content.job_type, content.queue, content.priority)
        once = flask.request.form.get("once") or None
        outcome = definitions.run_now(connection, name, catalogue(), operator(), once)
    return flask.redirect(flask.url_for("page.run", run_id=outcome.run_id, done="started-now"), 303)


def _page(connection: Connection, after_id: int) -> dict[str, Any]:
    rows, more = definitions.definitions_page(connection, after_id)
    last, now = definitions.last_tick(connection), definitions.clock(connection)
    overdue = {row["name"]: why for row in rows if (why := definitions.overdue(row, last, now))}
    return {
        "rows": rows,
        "overdue": overdue,
        "next": cursors.written("definitions", rows[-1]["id"], 0) if more else None,
    }


def _past(connection: Connection, definition_id: int) -> dict[str, Any]:
    """Return the last occurrences, the latest first, each with the status of its run; and how many had each outcome.

    A run that was pruned or erased has no status.
    """
    rows = definitions.occurrences_of(connection, definition_id, PAST)
    states = states_of(connection, [row["run_id"] for row in rows if row["run_id"]])
    shown = [{**row, "word": _word(row), "status": states.get(row["run_id"], {}).get("status")} for row in rows]
    return {"rows": shown, "counts": Counter(row["word"] for row in shown)}


def _word(row: Row) -> str:
    return LATE if row["outcome"] == Outcome.ENQUEUED and row["reason"] else str(row["outcome"])


def _overdue(connection: Connection, row: Row) -> str | None:
    now: datetime = definitions.clock(connection)
    return definitions.overdue(row, definitions.last_tick(connection), now)


def _previewed(row: Row) -> Preview:
    """Return what the form of the preview asks for: times from another start, or what an outage would do."""
    asked = {name: flask.request.args.get(name, "").strip() for name in ("from", "asleep")}
    if not any(asked.values()):
        return Preview(asked, None, {})
    query: dict[str, Any] = {name: text for name, text in asked.items() if text}
    try:
        shown = previewed({"from": "now", "count": PREVIEWED, **query}, row, words.now())
    except ScheduleInvalid as error:
        return Preview(asked, None, {error.field or "from": str(error)})
    return Preview(asked, shown[:PREVIEWED], {}, len(shown) > PREVIEWED)


def _condition() -> Precondition:
    version = flask.request.form.get("version", "")
    return Precondition({version} if version else None)
