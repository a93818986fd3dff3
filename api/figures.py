"""What /v1/stats and /metrics tell, read from the database at the moment: every process of the API tells the same."""

from __future__ import annotations

from api.database import transaction
from shared import definitions, effects, settings
from shared.database import Row
from shared.job_types import catalogue
from shared.queue import workers
from shared.queue.stats import figures


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
