"""What `rowcall definitions` is told, and what it answers."""

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
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


Say = Callable[..., Said]


def well(said: Said) -> str:
    """What a command said that did what it was told."""
    assert (said.code, said.stderr) == (0, "")
    return said.stdout


def cells(said: Said) -> list[list[str]]:
    """A table, heading and rows; columns are two spaces apart."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in well(said).splitlines()]
