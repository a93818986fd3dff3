"""Explain how a run ended, with the effects that it has left open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from rowcall import queue
from rowcall.base.database import Connection
from rowcall.effects.operate import OPEN, effects_of
from rowcall.job_types import Catalogue
from rowcall.queue import Explained
from rowcall.status import Status


def explain_with_effects(
    connection: Connection, run_id: int, declared: Mapping[str, int], heartbeat: float, catalogue: Catalogue
) -> Explained:
    """Explain a run as the queue does, and name the effects whose outcome is open if no attempt will follow."""
    explained = queue.explain(connection, run_id, declared, heartbeat, catalogue)
    if explained.status not in (Status.DEAD, Status.CANCELLED):
        return explained
    left_open = Counter(effect["kind"] for effect in effects_of(connection, run_id) if effect["state"] in OPEN)
    if not left_open:
        return explained
    counts = ", ".join(f"{count} of {kind}" for kind, count in sorted(left_open.items()))
    command = f"rowcall effects list --run {run_id}"
    others = [other for other in explained.commands if not other.startswith(command)]
    return replace(
        explained, message=f"{explained.message}; effects that may have happened: {counts}", commands=(command, *others)
    )
