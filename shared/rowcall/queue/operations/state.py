"""The status machine of an operation, as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class OperationStatus(StrEnum):
    """The status of an operation."""

    CANARY = "canary"  # its first run is changed alone
    WAITING = "waiting"  # the canary was changed; an operator decides
    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"


class OperationEvent(StrEnum):
    """What an operator can do to an operation."""

    STOP = "stop"
    CONTINUE = "continue"


# Event -> the statuses that allow it.
SOURCES: Mapping[OperationEvent, tuple[OperationStatus, ...]] = {
    OperationEvent.STOP: (OperationStatus.CANARY, OperationStatus.WAITING, OperationStatus.RUNNING),
    OperationEvent.CONTINUE: (OperationStatus.WAITING, OperationStatus.STOPPED),
}

# Workers change runs in these.
ACTIVE = (OperationStatus.CANARY, OperationStatus.RUNNING)


def allowed_in(status: OperationStatus) -> tuple[OperationEvent, ...]:
    """Return what an operator can do to an operation in this status."""
    return tuple(event for event, sources in SOURCES.items() if status in sources)


def after_batch(status: OperationStatus, met: int, more: bool) -> OperationStatus:
    """Return the status after a batch that met this many runs: a canary waits if there are more."""
    if not more:
        return OperationStatus.FINISHED
    return OperationStatus.WAITING if status is OperationStatus.CANARY and met else status
