"""Errors of requests that concern operations."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.base.errors.process import RowcallError
from rowcall.base.errors.sentences import has_status


class OperationNotFound(RowcallError):
    """No operation has this id."""

    def __init__(self, operation_id: int) -> None:
        super().__init__(f"there is no operation {operation_id}; `rowcall operations list` shows all operations")


class OperationRefused(RowcallError):
    """An operation's status does not allow this event; `allowed` names the events that it allows."""

    def __init__(self, operation_id: int, event: str, status: str, allowed: Sequence[str]) -> None:
        self.status = status
        self.allowed = tuple(allowed)
        super().__init__(
            f"operation {operation_id} {has_status(status)}: {event} is not allowed;"
            f" allowed: {', '.join(self.allowed) or 'nothing'}"
        )


class OperationKeyConflict(RowcallError):
    """An idempotency key was reused for another operation."""

    def __init__(self, key: str, operation_id: int) -> None:
        super().__init__(
            f"the idempotency key {key!r} belongs to operation {operation_id}, which was requested with different"
            " content; send the same content or another key"
        )
