"""For workers under libfaketime 0.9.10, which refuses the system call of Python 3.11's sleep (its issue 426)."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """Sleep with another system call."""
    select.select([], [], [], float(seconds))


time.sleep = sleep
