"""`rowcall up`: one command starts everything, and everything ends with it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rowcall.access.api_keys import list_keys
from rowcall.base import database, settings
from rowcall.base.child_processes import own_command
from rowcall.base.errors import LocalPostgresError
from rowcall.cli.up import demo
from rowcall.cli.up.processes import QUEUE
from rowcall.local_postgres.programs import find_programs
from rowcall.queue import Filter, enqueue, list_runs
from rowcall.status import Status
from tests.support.processes import APPS, ROOT, living_with, rowcall, start, wait_until


def sources() -> list[str]:
    """Return this machine's sources of PostgreSQL; the wheel is always one of them."""
    found = []
    for source in ("machine", "wheel"):
        try:
            found.append(find_programs(source).source)
        except LocalPostgresError:
            continue
    return found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yield an environment with its own home; no process that was started in it may outlive the test."""
    yield {**os.environ, "ROWCALL_HOME": str(tmp_path / "home")}
    try:
        wait_until(lambda: not living_with(str(tmp_path)), "none of its processes is alive")
    except AssertionError as error:
        raise AssertionError(f"{error}; alive: {living_with(str(tmp_path))}") from None


@pytest.fixture
def beside(home: dict[str, str], fresh_url: str) -> dict[str, str]:
    """The same with an existing database, so that no server and no demo start; for tests that need neither."""
    return {**home, "DATABASE_URL": fresh_url}


class Up:
    """A running `rowcall up`, and its output so far."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.process = start(environment, "up", "--yes", *arguments)
        self.said = self._read_until("Ctrl-C stops everything.")

    def _read_until(self, last: str) -> str:
        said = ""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said += line
            if last in line:
                return said
        pytest.fail(f"up ended too early:\n{said}")

    @property
    def api(self) -> str:
        [url] = re.findall(r"API +(http://\S+)", self.said)
        return str(url)

    @property
    def database(self) -> str:
        [url] = re.findall(r"psql (postgresql://\S+)", self.said)
        return str(url)

    def end(self, number: signal.Signals) -> str:
        """Send a signal, and return the rest of the output."""
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=60)
        return said


def typed(environment: dict[str, str], up: Up, word: str) -> str:
    """What the command that has this word answers, typed as it was shown."""
    [line] = [line for line in up.said.partition("Next, ")[2].splitlines() if f" {word}" in line]
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-c", line], env={**environment, "PATH": path}, capture_output=True, text=True, check=True
    ).stdout


def listed(up: Up, *statuses: str) -> list[dict[str, Any]]:
    """Return the newest runs, in all statuses or in these."""
    return listed_in(up.database, *statuses)


def listed_in(url: str, *statuses: str) -> list[dict[str, Any]]:
    with database.transaction(url) as connection:
        return list_runs(connection, Filter(tuple(map(Status, statuses))), limit=200).runs


def test_the_wheel_is_always_a_source() -> None:
    assert "wheel" in sources()


@pytest.mark.parametrize("source", sources())
def test_up_shows_a_run_succeed_and_its_commands_work_word_for_word(home: dict[str, str], source: str) -> None:
    up = Up({**home, "ROWCALL_POSTGRES": source}, "--port", "0")
    assert re.search(r"demo run +1 \(noop\) succeeded", up.said)
    assert "queued" in typed(home, up, "enqueue noop")
    assert " noop " in typed(home, up, "runs list")
    seen = json.loads(typed(home, up, "curl"))
    assert (seen["id"], seen["status"], seen["result"]) == (1, "succeeded", {"hello": "world"})
    assert "Rowcall has stopped." in up.end(signal.SIGINT)
    assert up.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_polite_signals_end_everything_too(beside: dict[str, str], number: signal.Signals) -> None:
    up = Up(beside, "--port", "0")
    assert "Rowcall has stopped." in up.end(number)
    assert up.process.returncode == 0


def test_killed_it_takes_everything_along(home: dict[str, str]) -> None:
    up = Up(home, "--port", "0")
    assert len(living_with(home["ROWCALL_HOME"])) >= 5
    up.end(signal.SIGKILL)
    # The fixture waits until no process of this home is alive.


def test_with_its_parent_killed_it_ends_with_it(home: dict[str, str]) -> None:
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *own_command("up", "--port", "0", "--with-parent")], env=home
    )
    wait_until(lambda: any("worker run" in line for line in living_with(home["ROWCALL_HOME"]).values()), "it is up")
    parent.kill()
    parent.wait()


def test_what_was_there_is_found_again_at_the_next_start_and_its_secrets_are_its_owners_alone(
    home: dict[str, str],
) -> None:
    first = Up(home, "--port", "0")
    first.end(signal.SIGINT)
    second = Up(home, "--port", "0")
    first_id, second_id = (re.findall(r"demo run +(\d+) \(noop\) succeeded", up.said) for up in (first, second))
    assert int(second_id[0]) > int(first_id[0])
    file = Path(home["ROWCALL_HOME"]) / "api_key"
    key = file.read_text()
    assert json.loads(typed(home, second, "curl"))["status"] == "succeeded"
    second.end(signal.SIGINT)
    # A key that was lost is replaced, though its name is taken.
    file.unlink()
    third = Up(home, "--port", "0")
    assert file.read_text() != key
    assert json.loads(typed(home, third, "curl"))["status"] == "succeeded"
    third.end(signal.SIGINT)
    for secret in ("api_key", "demo/payment_key", "demo/webhook_secret"):
        assert (Path(home["ROWCALL_HOME"]) / secret).stat().st_mode & 0o077 == 0


def test_a_port_in_use_is_an_error_when_it_was_asked_for(beside: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for refused in (
            rowcall(beside, "up", "--yes", "--port", str(port)),
            rowcall({**beside, "ROWCALL_API_PORT": str(port)}, "up", "--yes"),
        ):
            assert refused.returncode == 1
            assert refused.stderr.startswith(
                f"rowcall: the API cannot listen on 127.0.0.1:{port}: Address already in use; "
            )


def test_a_port_in_use_is_passed_over_when_it_was_not_asked_for(beside: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 8000))
            taken.listen()
        except OSError:
            pass  # another program has the port, which serves the test as well
        up = Up(beside)
        assert not up.api.endswith(":8000")
        up.end(signal.SIGINT)


def test_with_a_database_url_no_server_is_started(beside: dict[str, str], fresh_url: str) -> None:
    up = Up(beside, "--port", "0")
    assert re.search(r"in this folder:\n\n  export DATABASE_URL=\.\.\. ", up.said)
    assert [run["job_type"] for run in listed_in(fresh_url)] == ["noop"]
    assert not (Path(beside["ROWCALL_HOME"]) / "postgres").exists()
    up.end(signal.SIGINT)


def test_the_password_of_a_database_url_is_not_printed(beside: dict[str, str], fresh_url: str) -> None:
    up = Up(beside, "--port", "0")
    password = urlsplit(fresh_url).password
    assert password
    assert password not in up.said + up.end(signal.SIGINT)


def test_on_a_database_of_ones_own_it_takes_only_what_it_enqueued_itself(
    beside: dict[str, str], fresh_url: str
) -> None:
    with database.transaction(fresh_url) as connection:
        others = enqueue(connection, "noop", {}).run_id
    up = Up(beside, "--port", "0")
    typed(beside, up, "enqueue noop")
    wait_until(lambda: len(listed_in(fresh_url, "succeeded")) == 2, "its own are done")
    assert json.loads(typed(beside, up, "curl"))["status"] == "succeeded"
    assert "worker run     # your own jobs" in up.said
    assert [run["id"] for run in listed_in(fresh_url, "queued")] == [others]
    assert f"only runs of the queue {QUEUE}" in up.said
    up.end(signal.SIGINT)


def test_the_key_for_a_database_of_ones_own_expires_and_can_only_enqueue_and_read(
    beside: dict[str, str], fresh_url: str
) -> None:
    up = Up(beside, "--port", "0")
    up.end(signal.SIGINT)
    with database.transaction(fresh_url) as connection:
        [key] = list_keys(connection)
    assert key["scopes"] == ["enqueue", "read"]
    assert round((key["expires_at"] - key["created_at"]) / timedelta(hours=1)) == 24


MAIL_SERVER = {"ROWCALL_SMTP_URL": "smtp://127.0.0.1:1?starttls=never", "ROWCALL_MAIL_FROM": "rowcall@example.com"}
PROVIDER = {"ROWCALL_PAYMENT_URL": "http://127.0.0.1:1", "ROWCALL_PAYMENT_KEY": "sk_own"}


@pytest.mark.parametrize("own", [MAIL_SERVER, PROVIDER, {"DATABASE_URL": "postgresql://127.0.0.1/own"}])
def test_there_is_no_demo_where_the_environment_names_something_of_its_own(
    home: dict[str, str], fresh_url: str, own: dict[str, str]
) -> None:
    assert demo.prepared(settings.read({**home, **own, "ROWCALL_APP": demo.EXAMPLE}), fresh_url) is None
    with database.transaction(fresh_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regnamespace('example') IS NULL")


def test_there_is_no_demo_where_the_schema_example_is_somebody_elses(home: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "CREATE SCHEMA example; CREATE TABLE example.paintings (name text)")
    assert demo.prepared(settings.read({**home, "ROWCALL_APP": demo.EXAMPLE}), fresh_url) is None
    with database.transaction(fresh_url) as connection:
        assert database.fetch_value(connection, "SELECT to_regclass('example.users') IS NULL")


def routes_of(up: Up) -> set[str]:
    """Return the paths of the running API."""
    with urllib.request.urlopen(f"{up.api}/openapi.json") as answer:  # noqa: S310  # the URL is ours
        return set(json.load(answer)["paths"])


def test_with_an_app_of_a_teams_own_it_is_that_app_that_is_up_and_there_is_no_demo(home: dict[str, str]) -> None:
    up = Up({**home, "ROWCALL_APP": "shop", "PYTHONPATH": f"{APPS}:{ROOT}"}, "--port", "0")
    assert "runs retry" not in up.said
    assert [run["job_type"] for run in listed(up)] == ["noop"]
    assert "/counter/bell" in routes_of(up)
    assert "/v1/cleanups" not in routes_of(up)
    up.end(signal.SIGINT)


def test_without_the_example_it_is_up_with_rowcalls_own_types(home: dict[str, str]) -> None:
    up = Up({**home, "PYTHONPATH": f"{APPS / 'without_example'}:{ROOT}"}, "--port", "0")
    assert up.said.startswith("There is no example app: pip install 'rowcall[example]' adds it.\n")
    assert "runs retry" not in up.said
    assert [run["job_type"] for run in listed(up)] == ["noop"]
    assert "/v1/cleanups" not in routes_of(up)
    up.end(signal.SIGINT)


def test_nothing_of_the_demo_reaches_what_the_environment_names(home: dict[str, str]) -> None:
    up = Up({**home, **MAIL_SERVER}, "--port", "0")
    assert "runs retry" not in up.said
    assert [run["job_type"] for run in listed(up)] == ["noop"]
    up.end(signal.SIGINT)


def test_when_the_worker_dies_everything_ends_and_says_why(home: dict[str, str]) -> None:
    up = Up(home, "--port", "0")
    [worker] = [pid for pid, line in living_with(home["ROWCALL_HOME"]).items() if "worker run" in line]
    os.kill(worker, signal.SIGKILL)
    said, _ = up.process.communicate(timeout=60)
    assert up.process.returncode == 1
    assert said.rstrip().endswith("`rowcall worker run --grace 2.0` was killed by signal 9; start `rowcall up` again")
