"""How old the answers of a standby are."""

from __future__ import annotations

from math import inf

from rowcall.base.clock import elapsed

# Older answers are not given.  Less than the time after which a worker or a tick counts as silent, because an old
# answer must not raise such an alarm.
MOST_SECONDS = 10.0


class Positions:
    """Where the leader was lately in the write-ahead log, and when this process asked.

    A standby that has replayed up to a position has all that was committed before this process asked for it.  So the
    age of its answers needs no clock but this process's own, even if replay is paused or the standby has lost the
    leader; and while nothing is written, a standby that has everything does not grow old.
    """

    def __init__(self) -> None:
        self._asked: tuple[tuple[float, int], ...] = ()
        self._began = inf

    def note(self, asked_at: float, position: int) -> None:
        """Note the position that the leader had when it was asked, or later."""
        # A new tuple, because other threads may be reading the present one.
        recent = (one for one in self._asked if one[0] > asked_at - MOST_SECONDS)
        self._asked = (*recent, (asked_at, position))
        self._began = min(self._began, asked_at)

    @property
    def last(self) -> int | None:
        """The position that the leader had when it was last asked."""
        return self._asked[-1][1] if self._asked else None

    @property
    def have_just_begun(self) -> bool:
        """Whether a standby that is behind all positions may still be young."""
        return elapsed() - self._began < MOST_SECONDS

    def age_of(self, replayed: int) -> float:
        """Return how old an answer can be, at most, of a standby that has replayed up to this position."""
        for asked_at, position in reversed(self._asked):
            if position <= replayed:
                return elapsed() - asked_at
        return inf
