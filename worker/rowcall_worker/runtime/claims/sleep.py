"""Decides when an idle worker polls, and when it sleeps until a notification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from rowcall.base.database import PgConnection
from rowcall.queue.sleepers import awake, fall_asleep, have_ended

# A worker polls a few times before it falls asleep, with doubling pauses: while a run arrives every few milliseconds,
# no notification is needed.
FIRST_PAUSE_SECONDS = 0.001
AWAKE_SECONDS = 0.004

# A worker that was woken in vain polls for longer, because another worker takes the runs that arrive.
IN_VAIN_SECONDS = 1.0

# How often to poll for a place under a limit: no notification is sent when another worker's run frees one.
PLACE_SECONDS = 1.0

# Without notifications, the doubling pause is capped here; such a worker polls anyway, because ROWCALL_POLL is shorter.
LONGEST_PAUSE_SECONDS = 86_400.0

# The longest pause while a transaction is open that may not see the worker asleep.
OPEN_SECONDS = 0.1


class State(Enum):
    """What an idle worker is waiting for."""

    AWAKE = "the time of its next look"
    FALLING_ASLEEP = "the end of every transaction that may not see it asleep"
    LAST_LOOK = "a last look at what these have made due"
    ASLEEP = "a notification, or the poll"


@dataclass
class Sleep:
    """The state of one process, and its next pause."""

    worker: str
    # For how many seconds a worker that died while asleep is still notified.
    seconds: float
    # Whether notifications arrive; behind a pooler, they may not.
    listens: Callable[[], bool]
    state: State = State.AWAKE
    pause: float = float("inf")
    _told: bool = False
    _in_vain: bool = False
    _transaction: int = 0

    def busy(self) -> None:
        """Record that all slots are taken; the end of a run triggers the next look."""
        self.pause = float("inf")

    def waits_for_a_place(self, connection: PgConnection) -> None:
        """Poll for a place in a queue at its limit, because no notification will come."""
        self._wake_up(connection)
        self.pause = PLACE_SECONDS

    def found(self, connection: PgConnection) -> None:
        """Wake up after a claim found runs, because more may be due."""
        self._wake_up(connection)
        self._in_vain = False

    def nothing(self, connection: PgConnection, heard: bool) -> bool:
        """Record that a look found nothing, perhaps although a notification was `heard`; True if it should sweep."""
        if heard and self.state is not State.AWAKE:
            self._in_vain = True
            self._wake_up(connection)
        elif self.state is State.LAST_LOOK:
            self.state, self.pause = State.ASLEEP, float("inf")
        elif self.state is State.FALLING_ASLEEP:
            return self._wait_for_others(connection)
        elif self.state is State.AWAKE:
            self._poll_or_sleep(connection)
        return False

    def _poll_or_sleep(self, connection: PgConnection) -> None:
        if self.pause < self._most() or not self.listens():
            self.pause = min(2 * self.pause, LONGEST_PAUSE_SECONDS)
        elif self.pause == float("inf"):
            self.pause = FIRST_PAUSE_SECONDS
        else:
            self._fall_asleep(connection)

    def _fall_asleep(self, connection: PgConnection) -> None:
        # Set this first, because the result of the statement may be lost.
        self._told = True
        transaction = fall_asleep(connection, self.worker, self.seconds)
        if transaction is None:
            self.pause = 2 * self.pause
        else:
            self._transaction, self.state, self.pause = transaction, State.FALLING_ASLEEP, 0.0

    def _wait_for_others(self, connection: PgConnection) -> bool:
        if have_ended(connection, self._transaction):
            self.state, self.pause = State.LAST_LOOK, 0.0
            return True
        self.pause = min(2 * self.pause or FIRST_PAUSE_SECONDS, OPEN_SECONDS)
        return False

    def _most(self) -> float:
        return IN_VAIN_SECONDS if self._in_vain else AWAKE_SECONDS

    def _wake_up(self, connection: PgConnection) -> None:
        self.state, self.pause = State.AWAKE, FIRST_PAUSE_SECONDS
        if self._told:
            self._told = not awake(connection, self.worker)
