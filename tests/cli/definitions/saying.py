"""Input and output of `rowcall definitions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

TOML = """
[definitions.nightly]
job_type = "cleanup_nightly"
schedule = "30 2 * * *"
time_zone = "Europe/Berlin"
payload = { day = "{date-1}" }
max_lateness = "6h"
jitter = 90

[definitions.hourly]
job_type = "noop"
schedule = "0 * * * *"

[definitions.hand]
job_type = "noop"
"""


@dataclass(frozen=True)
class Said:
    """A command's exit code and output."""

    code: int
    stdout: str
    stderr: str


Say = Callable[..., Said]


def well(said: Said) -> str:
    """Return the output of a command, and assert that it succeeded."""
    assert (said.code, said.stderr) == (0, "")
    return said.stdout


def cells(said: Said) -> list[list[str]]:
    """Return the cells of a table, including the heading; columns are two spaces apart."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in well(said).splitlines()]
