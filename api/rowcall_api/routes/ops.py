"""Health checks: whether the process is alive, and whether it can serve."""

from __future__ import annotations

from typing import Any

import flask

from rowcall.base.database import fetch_value
from rowcall.base.errors import DatabaseUnavailable
from rowcall.definitions import last_tick
from rowcall.schema import check_revision
from rowcall.schema.identity import DATABASE_HEADER, identity_of
from rowcall_api.http.database import READ_ONLY, transaction
from rowcall_api.standby.requests import STANDBY
from rowcall_api.standby.standby import Standby

blueprint = flask.Blueprint("ops", __name__)


@blueprint.get("/healthz")
def alive() -> dict[str, str]:
    """Report that the process responds, without using the database: an outage must not restart healthy processes."""
    return {"status": "alive"}


@blueprint.get("/readyz")
def ready() -> tuple[dict[str, Any], dict[str, str]]:
    """Report that the database is reachable and writable and has the expected schema, or return a problem document.

    If no worker ticks, the API stays in service but reports `degraded`.  A header tells `rowcall doctor`
    whether this is the API of its database; anybody may read it, so it is a hash.
    """
    with transaction() as connection:
        if fetch_value(connection, "SELECT current_setting('transaction_read_only')") == "on":
            raise DatabaseUnavailable(READ_ONLY)
        check_revision(connection)
        last = last_tick(connection)
        headers = {DATABASE_HEADER: identity_of(connection)}
    if not last["silent"]:
        return {"status": "ready", **_standby()}, headers
    degraded = {
        "status": "degraded",
        "since": last["ticked_at"].isoformat(),
        "reason": "no worker has ticked the schedules since then: check cron or `rowcall worker run`",
    }
    return {**degraded, **_standby()}, headers


def _standby() -> dict[str, str]:
    """Say whether the standby answers reads; if it does not, the leader does, so the API stays in service."""
    standby: Standby | None = flask.current_app.extensions.get(STANDBY)
    if standby is None:
        return {}
    return {"standby": "answers" if standby.away is None else f"away: {standby.away}"}
