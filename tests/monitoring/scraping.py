"""Scrape real processes, and let promtool read what they serve."""

from __future__ import annotations

import http.client
import json
import subprocess
from contextlib import closing

from tests.support.processes import LIMIT_SECONDS

PROGRAM = "promtool"


def scraped(url: str) -> str:
    """Return what a process serves."""
    address, _, path = url.removeprefix("http://").partition("/")
    with closing(http.client.HTTPConnection(address, timeout=LIMIT_SECONDS)) as client:
        client.request("GET", f"/{path}")
        return client.getresponse().read().decode()


def promtool(*arguments: str, text: str | None = None) -> str:
    """Run promtool; return what it prints, and fail with that if it complains."""
    done = subprocess.run(
        [PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def url_in(log: str) -> str:
    """Return the URL that a worker's line `metrics served` names."""
    lines = [json.loads(line) for line in log.splitlines() if '"metrics served"' in line]
    url: str = lines[-1]["url"]
    return url
