"""One run: what it is, what happened to it, why it waits, and what can be done."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import flask

from rowcall import effects, queue
from rowcall.base import settings
from rowcall.base.database import LARGEST_ID, Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue import Explained
from rowcall.queue.views.pages import Order
from rowcall_api.page import access
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.page.timeline import RETRIED, Entry, timeline
from rowcall_api.page.words import now
from rowcall_api.rights import may, may_clone, may_steer

ATTEMPTS_MOST, EFFECTS_MOST, LINES_MOST = 20, 50, 100


@dataclass(frozen=True)
class Draft:
    """An open form on this screen: its name, what was typed, and what is wrong with it."""

    form: str
    typed: Mapping[str, str] = field(default_factory=dict)
    wrong: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempts:
    """The entries of the timeline, and the number of the lease before which there are older ones, if there are any."""

    entries: list[Entry]
    older_than: int | None

    @property
    def retried(self) -> bool:
        """Return whether a retry has restarted the count."""
        return any(entry.title == RETRIED for entry in self.entries)


@blueprint.get("/runs/<int:run_id>")
def run(run_id: int) -> str:
    """Show a run."""
    return screen(run_id)


@blueprint.get("/runs/<int:run_id>/<any('clone', 'reschedule'):form>", endpoint="run_form")
@access.only_for("operate")
def show_form(run_id: int, form: str) -> str:
    """Show a run with one of its forms open."""
    return screen(run_id, Draft(form))


def screen(run_id: int, draft: Draft | None = None) -> str:
    """Show a run; without the scope `read`, only its status and the shape of its payload and result."""
    row = at_once(queue.get_run, run_id)
    steers = access.may_change() and may_steer(row)
    events = {event.name.lower() for event in queue.allowed_events(row)} if steers else set()
    shown = {
        "room": "page.runs",
        "run": row,
        "events": events,
        "version": queue.version_of(row),
        "draft": draft,
    }
    if not may("read"):
        return flask.render_template("rowcall_page/run_shape.html", **shown)
    before = flask.request.args.get("before", LARGEST_ID, type=int)
    return flask.render_template(
        "rowcall_page/run.html",
        **shown,
        explained=part(_explained, run_id),
        attempts=part(_attempts, row, before),
        whole=before == LARGEST_ID,
        effects=part(effects.page_of_effects, run_id=run_id, limit=EFFECTS_MOST),
        unresolved=part(effects.unresolved_effects, run_id) if "retry" in events else None,
        log=part(_log, run_id),
        # Ensures that a form that is sent twice enqueues one copy.
        once=secrets.token_hex(8),
        may_clone=access.may_change() and row["pruned_at"] is None and part(may_clone, row).value,
    )


def _explained(connection: Connection, run_id: int) -> Explained:
    types = catalogue()
    return effects.explain_with_effects(connection, run_id, types.limits, settings.read().heartbeat, types)


def _attempts(connection: Connection, run: Row, before: int) -> Attempts:
    newest = before == LARGEST_ID
    rows, more = queue.attempts_page(connection, run["id"], before, ATTEMPTS_MOST, order=Order.DESC)
    return Attempts(timeline(run, rows, now(), newest), rows[-1]["lease_no"] if more else None)


def _log(connection: Connection, run_id: int) -> dict[str, Any]:
    lines: list[Row] = queue.log_end(connection, run_id, LINES_MOST)
    return {"lines": lines, "left_out": queue.left_out(connection, run_id)}
