"""psql, as a DBA runs it."""

from __future__ import annotations

import subprocess

from rowcall.local_postgres.programs import find_programs
from tests.support.processes import LIMIT_SECONDS


def psql(url: str, script: str) -> str:
    """Run a script and return its output; raise CalledProcessError at the first error."""
    return subprocess.run(
        [find_programs().folder / "psql", "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", "-", url],
        input=script,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    ).stdout
