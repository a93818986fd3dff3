"""Health checks: whether the process is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any

import flask

from rowcall.base.database import fetch_value
from rowcall.base.errors import DatabaseUnavailable
from rowcall.definitions import last_tick
from rowcall.schema import check_revision
from rowcall_api.http.database import READ_ONLY, transaction

blueprint = flask.Blueprint("ops", __name__)


@blueprint.get("/healthz")
def alive() -> dict[str, str]:
    """The process answers. It does not ask the database, so that an outage restarts no healthy process."""
    return {"status": "alive"}


@blueprint.get("/readyz")
def ready() -> dict[str, Any]:
    """The database is there, takes writes and has this code's schema; otherwise a problem says what is wrong.

    Schedules that nobody ticks are no reason to take the API out of service, but one to look: degraded, since when.
    """
    with transaction() as connection:
        if fetch_value(connection, "SELECT current_setting('transaction_read_only')") == "on":
            raise DatabaseUnavailable(READ_ONLY)
        check_revision(connection)
        last = last_tick(connection)
    if not last["silent"]:
        return {"status": "ready"}
    return {
        "status": "degraded",
        "since": last["ticked_at"].isoformat(),
        "reason": "no worker has ticked the schedules since then: look at cron, or at `rowcall worker run`",
    }
