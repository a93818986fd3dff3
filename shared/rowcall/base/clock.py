"""The process's clock, used only for waiting: the database's clock decides what is due."""

from __future__ import annotations

import time

# CLOCK_BOOTTIME goes on while the machine is suspended, which CLOCK_MONOTONIC does not: a worker that wakes from a
# suspended laptop must see that its leases are over.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Seconds since some fixed moment, counting those in which the machine slept; immune to a changed wall clock."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
