"""The environment of a process with a wrong wall clock and a correct monotonic clock."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

from tests.support.processes import APPS

FAKETIME = shutil.which("faketime") or "faketime"


def wrong_clock(environment: Mapping[str, str], minutes: int) -> dict[str, str]:
    """Return this environment for a process whose clock is this many minutes ahead."""
    library = subprocess.run([FAKETIME, "-m", "-f", "+0", "printenv", "LD_PRELOAD"], stdout=subprocess.PIPE, check=True)
    return {
        **environment,
        "LD_PRELOAD": library.stdout.decode().strip(),
        "FAKETIME": f"{minutes:+d}m",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "PYTHONPATH": f"{APPS / 'wrong_clock'}:{environment['PYTHONPATH']}",
    }
