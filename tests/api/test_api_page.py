"""docs/api.md: every command on the page does what the page says, with a real server and a worker."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.serving import served
from tests.support.processes import LIMIT_SECONDS, ROOT, rowcall, running

PAGE = (ROOT / "docs" / "api.md").read_text()

BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

pytestmark = [pytest.mark.program("curl"), pytest.mark.usefixtures("example_app")]


@pytest.fixture
def reader(environment: dict[str, str], fresh_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of a reader who has the API and a worker."""
    environment |= {"DATABASE_URL": fresh_url}
    assert rowcall(environment, "demo", "seed", "--users", "1").returncode == 0
    with served(environment, tmp_path) as server, running(environment, "worker", "run"):
        yield {
            **environment,
            "API_URL": f"http://127.0.0.1:{server.port}",
            "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}",
        }


def test_the_page_has_commands_for_its_tasks() -> None:
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) <= len(BLOCKS)
    assert sum(block.count("rowcall_api") for block in BLOCKS) >= 30


def test_every_command_on_the_page_runs(reader: dict[str, str]) -> None:
    script = "\n".join(f"echo '--- block {number}' >&2\n{block}" for number, block in enumerate(BLOCKS))
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        env=reader,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stderr[-2000:]}\n{done.stdout[-2000:]}"
    assert "is not a setting" not in done.stderr
    assert "Idempotent-Replayed: true" in done.stdout
    assert "rowcall_runs_due" in done.stdout
