"""The process's clock.  It is used only for waiting: the database's clock decides what is due."""

from __future__ import annotations

import time

# Unlike CLOCK_MONOTONIC, CLOCK_BOOTTIME also runs while the machine is suspended: when a laptop resumes, a worker on it
# must see that its leases have expired.
_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def elapsed() -> float:
    """Return the seconds since a fixed moment, including suspended time; changes of the wall clock do not matter."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
