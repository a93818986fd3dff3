"""File locks that the kernel gives back when their last holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

POLL = 0.01  # seconds; a lock is waited for with a limit, which flock itself does not know


class LockBusy(Exception):
    """Somebody else held the lock for as long as the caller was ready to wait."""


class Lock:
    """One open lock file.  What it holds is held until it is closed here and in every process that inherited it."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def fileno(self) -> int:
        """The descriptor, for handing the lock to a child process."""
        return self._fd

    def try_shared(self) -> bool:
        """Hold it beside other sharers, unless somebody holds it alone."""
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Hold it alone, unless anybody holds it."""
        return self._try(fcntl.LOCK_EX)

    def removed(self) -> bool:
        """Whether the file was deleted, so that others may hold a newer file of this name."""
        return os.fstat(self._fd).st_nlink == 0

    def close(self) -> None:
        """Give up this process's hold; closing again does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self._fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def shared(path: Path, patience: float) -> Lock:
    """A shared hold on this file, waited for so many seconds; LockBusy after that."""
    return _take(path, Lock.try_shared, patience)


def exclusive(path: Path, patience: float) -> Lock:
    """An exclusive lock on this file; LockBusy if it is not free within so many seconds."""
    return _take(path, Lock.try_exclusive, patience)


def _take(path: Path, attempt: Callable[[Lock], bool], patience: float) -> Lock:
    deadline = time.monotonic() + patience
    while True:
        lock = Lock(path)
        try:
            held = _wait(lock, attempt, deadline)
        except BaseException:
            lock.close()
            raise
        if held:
            return lock
        lock.close()


def _wait(lock: Lock, attempt: Callable[[Lock], bool], deadline: float) -> bool:
    """True once held; False when the file was deleted meanwhile and another must be opened."""
    while not attempt(lock):
        if time.monotonic() > deadline:
            raise LockBusy
        time.sleep(POLL)  # a blocking flock() has no deadline
    return not lock.removed()
