"""What /v1/stats and /metrics tell, read from the database at the moment: every process of the API tells the same."""

from __future__ import annotations

from rowcall import definitions, effects
from rowcall.base import settings
from rowcall.base.database import Row
from rowcall.job_types import catalogue
from rowcall.queue import workers
from rowcall.queue.views.stats import figures
from rowcall_api.http.database import transaction


def figures_now() -> Row:
    """What waits, runs and fails, and when the schedules were last ticked."""
    types = catalogue()
    silence = workers.silence(settings.read().heartbeat)
    with transaction() as connection:
        told = figures(connection, {kind.queue for kind in types.values()}, types.limits, silence)
        unknown = effects.count_unknown(connection)
        tick = definitions.last_tick(connection)
    return {
        **told,
        "effects_unknown": unknown,
        "tick": {**tick, "age_seconds": (told["at"] - tick["ticked_at"]).total_seconds()},
    }
