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
    """Report that the process responds, without using the database: an outage must not restart healthy processes."""
    return {"status": "alive"}


@blueprint.get("/readyz")
def ready() -> dict[str, Any]:
    """Report that the database is reachable and writable and has the expected schema, or return a problem document.

    If no worker ticks the schedules, the API stays in service but reports `degraded`.
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
        "reason": "no worker has ticked the schedules since then: check cron or `rowcall worker run`",
    }
