"""One run: what it is, what happened to it, why it waits, and what can be done."""

from __future__ import annotations

from typing import Any

import flask

from rowcall import effects, queue
from rowcall.base import settings
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue import Explained
from rowcall.queue.views.pages import Order
from rowcall_api.page.blueprint import blueprint
from rowcall_api.page.reading import at_once, part
from rowcall_api.rights import may
from rowcall_api.schemas.runs import RunSchema

ATTEMPTS_MOST, EFFECTS_MOST, LINES_MOST = 20, 50, 100

# What a reader without the scope `read` sees of a run, as in the API's responses to such a key.
LEAST = (*RunSchema.least, "job_type", "queue")


@blueprint.get("/runs/<int:run_id>")
def run(run_id: int) -> str:
    """Show a run; without the scope `read`, only its status and the shape of its payload and result."""
    row = at_once(queue.get_run, run_id)
    shown = {"run": row, "events": [event.value for event in queue.allowed_events(row)]}
    if not may("read"):
        return flask.render_template("rowcall_page/run_shape.html", **shown)
    attempts = part(queue.attempts_page, run_id, Order.DESC.beginning, ATTEMPTS_MOST, order=Order.DESC)
    return flask.render_template(
        "rowcall_page/run.html",
        **shown,
        explained=part(_explained, run_id),
        attempts=attempts,
        effects=part(effects.page_of_effects, run_id=run_id, limit=EFFECTS_MOST),
        log=part(_log, run_id),
        version=queue.version_of(row),
    )


def _explained(connection: Connection, run_id: int) -> Explained:
    types = catalogue()
    return effects.explain_with_effects(connection, run_id, types.limits, settings.read().heartbeat, types)


def _log(connection: Connection, run_id: int) -> dict[str, Any]:
    lines: list[Row] = queue.log_end(connection, run_id, LINES_MOST)
    return {"lines": lines, "left_out": queue.left_out(connection, run_id)}
