"""Reads the figures of /v1/stats and /metrics from the database, so that all API processes report the same."""

from __future__ import annotations

from rowcall import definitions, effects
from rowcall.base import settings
from rowcall.base.database import Connection, Row
from rowcall.job_types import catalogue
from rowcall.queue.views.stats import figures
from rowcall_api.http.database import transaction


def figures_now() -> Row:
    """Return counts of waiting, running and failed runs, and the time of the last tick."""
    with transaction() as connection:
        return read_figures(connection)


def read_figures(connection: Connection) -> Row:
    """Read the figures in the caller's transaction."""
    types = catalogue()
    heartbeat = settings.read().heartbeat
    counts = figures(connection, types.queues, types.limits, heartbeat)
    unknown = effects.count_unknown(connection)
    tick = definitions.last_tick(connection)
    return {
        **counts,
        "effects_unknown": unknown,
        "tick": {**tick, "age_seconds": (counts["at"] - tick["ticked_at"]).total_seconds()},
    }
