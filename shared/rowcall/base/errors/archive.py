"""Errors of the archive table."""

from __future__ import annotations

from datetime import date

from rowcall.base.errors.process import RowcallError
from rowcall.base.errors.requests import TransitionRefused


class RunArchived(TransitionRefused):
    """A run cannot be changed because it is in the archive."""

    def __init__(self, run_id: int, event: str, status: str) -> None:
        clone = f"only a clone, with `rowcall runs clone {run_id}`"
        super().__init__(run_id, event, status, allowed=(), reason="it is in the archive", instead=clone)


class MonthNotArchived(RowcallError):
    """The archive table has no partition for this month."""

    def __init__(self, month: date) -> None:
        super().__init__(
            f"the archive table has no runs of {month:%Y-%m}; `rowcall archive list` shows the months that it has"
        )


class ParquetMissing(RowcallError):
    """Parquet files cannot be written without the extra that has their library."""

    def __init__(self) -> None:
        super().__init__("Parquet files need the parquet extra: pip install 'rowcall[parquet]'; CSV needs none")


class ArchiveBusy(RowcallError):
    """A month of the archive cannot be dropped now."""

    def __init__(self, month: date, why: str) -> None:
        super().__init__(f"{month:%Y-%m} was not dropped from the archive table, because {why}: try again later")
