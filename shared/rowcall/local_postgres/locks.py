"""File locks, which the kernel releases when their last holder dies, even from SIGKILL."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

POLL = 0.01  # seconds; polling, because flock() cannot wait with a time limit


class LockBusy(Exception):
    """The lock did not become free within the time limit."""


class Lock:
    """An open lock file.  Its lock is held until this process and all processes with a copy have closed it."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)

    def fileno(self) -> int:
        """Return the descriptor, to pass the lock to a child process."""
        return self._fd

    def try_shared(self) -> bool:
        """Take a shared lock, unless another process has an exclusive one; return whether that succeeded."""
        return self._try(fcntl.LOCK_SH)

    def try_exclusive(self) -> bool:
        """Take an exclusive lock, unless another process has any; return whether that succeeded."""
        return self._try(fcntl.LOCK_EX)

    def removed(self) -> bool:
        """Return whether the file was deleted, so that others may lock a newer file with this name."""
        return os.fstat(self._fd).st_nlink == 0

    def close(self) -> None:
        """Close the file in this process; closing it again does nothing."""
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
    """Take a shared lock on this file; raise LockBusy if that is not possible within this many seconds."""
    return _take(path, Lock.try_shared, patience)


def exclusive(path: Path, patience: float) -> Lock:
    """Take an exclusive lock on this file; raise LockBusy if that is not possible within this many seconds."""
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
    """Wait for the lock; return False if the file was deleted in the meantime, so that it must be opened again."""
    while not attempt(lock):
        if time.monotonic() > deadline:
            raise LockBusy
        time.sleep(POLL)  # a blocking flock() has no deadline
    return not lock.removed()
