"""For workers under libfaketime 0.9.10, which refuses the sleep that Python 3.11 asks for (its issue 426)."""

import select
import time
from typing import SupportsIndex


def sleep(seconds: float | SupportsIndex, /) -> None:
    """Wait as long, in another system call."""
    select.select([], [], [], float(seconds))


time.sleep = sleep
