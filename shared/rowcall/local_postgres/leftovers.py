"""Waits for processes of an earlier server that outlived their keeper or starter, then kills them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.home import Home
from rowcall.local_postgres.locks import Lock, LockBusy, exclusive

# The kernel signals a server when its keeper dies, so the first wait is nearly always short.
PATIENCE = ((signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
PROC = Path("/proc")  # absent on macOS, where `ps` is used instead
NAMES = {"postgres", "postmaster"}
LAST_PATIENCE = 5.0  # seconds to wait until the kernel has removed the killed processes


def wait_out(home: Home) -> Lock:
    """Wait until no process can write to the cluster, and return its lock.

    Every process of our servers inherits this lock, so process IDs need not be trusted: with the lock, a leftover
    postmaster.pid means nothing.
    """
    lock = _lock(home)
    try:
        _refuse_stranger(home)
    except BaseException:
        lock.close()
        raise
    return lock


def _lock(home: Home) -> Lock:
    for number, patience in PATIENCE:
        with contextlib.suppress(LockBusy):
            return exclusive(home.cluster_lock, patience)
        for holder in _holders(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(holder, number)
    try:
        return exclusive(home.cluster_lock, LAST_PATIENCE)
    except LockBusy:
        raise LocalPostgresError(
            f"processes of an earlier server still use {home.cluster} and could not be killed:"
            f" `fuser {home.cluster_lock}` lists them"
        ) from None


def _holders(home: Home) -> list[int]:
    """Return other processes that have the cluster's lock file open, as far as the system shows them."""
    if not PROC.is_dir():
        return [pid for pid in _noted(home) if _is_postgres(pid)]
    path = home.cluster_lock.resolve()
    return [pid for pid in _others() if _has_open(pid, path)]


def _others() -> Iterator[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal() and int(entry.name) != os.getpid())


def _has_open(pid: int, path: Path) -> bool:
    with contextlib.suppress(OSError):  # the process has ended, or belongs to another user
        return any(_leads_to(link, path) for link in (PROC / str(pid) / "fd").iterdir())
    return False


def _leads_to(link: Path, path: Path) -> bool:
    with contextlib.suppress(OSError):  # the file was closed in the meantime
        return link.readlink() == path
    return False


def _refuse_stranger(home: Home) -> None:
    """Refuse to start if somebody started PostgreSQL on this data by hand.

    The process ID in postmaster.pid alone proves nothing, because the kernel may have given it to another process.
    """
    for pid in _noted(home):
        if _is_postgres(pid) and _works_in(pid, home.data):
            raise LocalPostgresError(
                f"a PostgreSQL that Rowcall did not start (process {pid}) is running on {home.data}: stop it first"
            )


def _noted(home: Home) -> list[int]:
    """Return the process ID in postmaster.pid, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        first = (home.data / "postmaster.pid").read_text("utf-8", errors="replace").partition("\n")[0]
        return [int(first)] if first.strip().isdecimal() else []
    return []


def _is_postgres(pid: int) -> bool:
    if PROC.is_dir():
        with contextlib.suppress(OSError):
            return (PROC / str(pid) / "comm").read_text(errors="replace").strip() in NAMES
        return False
    told = subprocess.run(["/bin/ps", "-p", str(pid), "-o", "comm="], capture_output=True, text=True, check=False)
    return Path(told.stdout.strip()).name in NAMES


def _works_in(pid: int, data: Path) -> bool:
    """Return whether this is the process's working directory; assume so if the system does not show it."""
    if not PROC.is_dir():
        return True
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "cwd").samefile(data)
    return False
