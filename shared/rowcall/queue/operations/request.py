"""An operator's checked request to change many runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rowcall.access.audit import wrong_with_reason
from rowcall.base.errors import FilterInvalid
from rowcall.base.timestamps import in_utc, unusable
from rowcall.queue.keys.fingerprint import fingerprint_of
from rowcall.queue.operations.actions import Action, narrowed
from rowcall.queue.views.filters import Filter, from_json, to_json

# As the table can hold it.
MOST_RUNS = 2**31 - 1


@dataclass(frozen=True)
class Requested:
    """An action, and the runs that it is meant for: all that match, or the newest of them.

    With `canary`, the first run is changed alone, and the operation then waits for an operator.
    """

    action: Action
    criteria: Filter
    everything: bool = False
    max_runs: int | None = None
    run_at: datetime | None = None
    canary: bool = False
    reason: str | None = None

    def __post_init__(self) -> None:
        wrong = {name: complaint for name, complaint in self._complaints().items() if complaint}
        if wrong:
            raise FilterInvalid(wrong)
        object.__setattr__(self, "run_at", in_utc(self.run_at))

    def _complaints(self) -> dict[str, str | None]:
        """Say what is wrong with each field."""
        reschedules = self.action is Action.RESCHEDULE
        run_at = unusable(self.run_at) if self.run_at else "is missing: when should the runs be due?"
        if not reschedules:
            run_at = "is only for reschedule" if self.run_at else None
        usable = self.max_runs is None or 1 <= self.max_runs <= MOST_RUNS
        too_wide = self.criteria.leaves_all_open and not self.everything
        return {
            "filter": "matches every run: narrow it, or send `all` to mean every run" if too_wide else None,
            "run_at": run_at,
            "max_runs": None if usable else f"must be from 1 to {MOST_RUNS}",
            "reason": wrong_with_reason(self.reason),
        }

    @property
    def narrowed(self) -> Filter:
        """Return the filter, limited to the statuses that the action can start from."""
        return narrowed(self.action, self.criteria)

    @property
    def stored(self) -> dict[str, Any]:
        """Return the request as the table stores it; the filter is JSON."""
        return {
            "action": self.action.word,
            "filter": to_json(self.criteria),
            "run_at": self.run_at,
            "max_runs": self.max_runs,
            "canary": self.canary,
            "reason": self.reason,
        }

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint that distinguishes a repeated request from a different one with the same key."""
        return fingerprint_of("operation", self.stored, {})


def stored_request(row: dict[str, Any]) -> Requested:
    """Return the request of a row of `operations`."""
    return Requested(
        Action[row["action"].upper()],
        from_json(row["filter"]),
        everything=True,
        max_runs=row["max_runs"],
        run_at=row["run_at"],
        canary=row["canary"],
        reason=row["reason"],
    )
