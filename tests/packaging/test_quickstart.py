"""docs/quickstart.md, typed word for word: from an empty folder to a report that survives `kill -9`."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.page import Reader, blocks
from tests.support.processes import LIMIT_SECONDS, living_with, wait_until

BLOCKS = blocks("quickstart.md", "sh")
KILL = BLOCKS[-1]

# Typed once in each terminal.
EXPORT = "export ROWCALL_APP=shop\n"
WEEK = '{"week": "2026-01-12"}'


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The empty folder; nothing that was started in it may outlive the test."""
    yield tmp_path
    wait_until(lambda: not living_with(str(tmp_path)), "nothing of it is alive")


@contextmanager
def up(folder: Path, number: signal.Signals) -> Iterator[str]:
    """`rowcall up`, ended by this signal; yields the URL of its database."""
    variables = Reader(folder, ROWCALL_APP="shop", ROWCALL_API_PORT="0").environment
    process = subprocess.Popen(["rowcall", "up"], cwd=folder, env=variables, stdout=subprocess.PIPE, text=True)  # noqa: S607
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if "Ctrl-C stops" in line:
            break
    [url] = re.findall(r"psql (postgresql://\S+)", said)
    try:
        yield url
    finally:
        process.send_signal(number)
        process.communicate(timeout=LIMIT_SECONDS)


def test_the_commands_do_what_the_page_says(folder: Path) -> None:
    install, start, enqueue, again, see, kill = BLOCKS
    assert (start, kill.startswith("kill -9 ")) == ("rowcall up\n", True)
    # This environment has what the first three lines install.
    create = install.partition("pytest\n")[2]
    assert "2 passed" in Reader(folder).type(create)
    shop = folder / "shop"
    with up(shop, signal.SIGINT) as url:
        assert "run 2 queued" in Reader(shop).type(enqueue)
        wait_until(lambda: status(url, 2) == "succeeded", "the report is sent")
        assert "already exists: nothing added" in Reader(shop).type(f"{EXPORT}{again}")
        assert len(list((shop / ".rowcall" / "mail").iterdir())) == 1
        times = Reader(shop).type(f"{EXPORT}{see}")
        assert (times.count("Mon "), times.count("07:00 CEST"), times.count("07:00 CET")) == (3, 1, 2), times


def test_a_report_survives_kill_9(folder: Path) -> None:
    Reader(folder).type("rowcall new shop")
    shop = folder / "shop"
    handler = shop / "shop" / "handlers.py"
    slow = f"import time; time.sleep(0 if __import__('os').path.exists('{folder}/killed') else 60)"
    handler.write_text(handler.read_text().replace("    run.effect(", f"    {slow}\n    run.effect("))
    with up(shop, signal.SIGINT) as url:
        assert worker_of(folder)
        Reader(shop).type(f"{EXPORT}rowcall enqueue shop_weekly_report '{WEEK}'")
        wait_until(lambda: status(url, 2) == "running", "the report is being written")
        Reader(shop).type(f"{EXPORT}{KILL}")
        wait_until(lambda: not worker_of(folder), "its worker is dead")
    (folder / "killed").touch()
    with up(shop, signal.SIGINT) as url:
        with database.transaction(url) as connection:
            database.fetch_all(connection, "UPDATE rowcall.job_runs SET locked_until = now() WHERE status = 'running'")
        wait_until(lambda: tried_again(url), "the report is sent")
        assert "LeaseExpired" in Reader(shop).type(f"{EXPORT}rowcall runs show 2")
        assert len(list((shop / ".rowcall" / "mail").iterdir())) == 1


def worker_of(folder: Path) -> list[int]:
    """Return the process ids of its workers."""
    return [pid for pid, line in living_with(str(folder)).items() if "worker run" in line]


def status(url: str, run_id: int) -> str:
    with database.transaction(url) as connection:
        return str(
            database.fetch_value(connection, "SELECT status FROM rowcall.job_runs WHERE id = %(id)s", {"id": run_id})
        )


def tried_again(url: str) -> bool:
    """Whether the run has succeeded; it does not wait for its backoff."""
    with database.transaction(url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.job_runs SET run_at = now() WHERE status = 'failed'")
    return status(url, 2) == "succeeded"
