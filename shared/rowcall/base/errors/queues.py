"""Errors of requests that concern queues."""

from __future__ import annotations

from rowcall.base.errors.process import RowcallError


class QueueInvalid(RowcallError):
    """No queue can have this name."""

    field = "name"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name[:100]!r} is not a valid queue name: use lower-case words such as mail")


class QueueNotFound(RowcallError):
    """No job type uses this queue, and it has neither live runs nor settings."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no queue {name[:100]!r}; `rowcall queues list` shows all queues")


class QueueUnset(RowcallError):
    """A queue has no settings to remove."""

    def __init__(self, name: str) -> None:
        super().__init__(f"queue {name[:100]!r} has no settings to remove: `rowcall queues list` shows all queues")


class QueueBusy(RowcallError):
    """Settings of a queue cannot change now: runs count against its limit, or another operator has `removed` them."""

    def __init__(self, name: str, removed: bool = False) -> None:
        super().__init__(
            f"another operator keeps removing the settings of queue {name!r}: try again in a moment"
            if removed
            else f"runs of queue {name!r} that count against its limit are running: try again when they end"
        )
