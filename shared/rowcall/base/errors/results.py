"""Errors of a caller that waits for the result of a run."""

from __future__ import annotations

from rowcall.base.errors.process import RowcallError


class NoResult(RowcallError):
    """A run has no result: it is dead or cancelled, has not ended in time, was pruned, or cannot be seen.

    `status` is its status, or None if it cannot be seen.
    """

    def __init__(self, run_id: int, status: str | None, sentence: str) -> None:
        self.run_id = run_id
        self.status = status
        super().__init__(sentence)


class ResultTimeout(NoResult, TimeoutError):
    """A run has not ended within the caller's timeout."""

    def __init__(self, run_id: int, status: str, seconds: float) -> None:
        super().__init__(run_id, status, f"run {run_id} has not ended within {seconds:g} seconds: it is {status}")


class TransactionOpen(RowcallError):
    """A caller waits on a connection that is in a transaction."""

    def __init__(self) -> None:
        super().__init__(
            "the connection is in a transaction, so the run cannot start or its end cannot be seen: commit first, or"
            " leave the `with` block of the transaction, and then call result()"
        )
