"""`rowcall doctor`: one sentence for each problem, and how to fix it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rowcall.base import database, settings
from rowcall.cli.doctor import examine
from rowcall.cli.doctor.examine import clock, postgres
from rowcall.schema import REVISION
from rowcall.status import Status
from tests.definitions.keeping import asleep_since, kept
from tests.support.doctor import well_kept
from tests.support.pooler import pgbouncer
from tests.support.processes import rowcall, start, wait_until
from tests.support.roles import role
from tests.support.rows import run_in


@pytest.fixture
def well(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which doctor finds no problem."""
    return well_kept(environment)


def findings(environment: dict[str, str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return doctor's exit code, and its findings by subject."""
    examined = rowcall(environment, "doctor", "--json")
    assert "Traceback" not in examined.stderr
    return examined.returncode, {finding["subject"]: finding for finding in json.loads(examined.stdout)["findings"]}


def test_all_is_well(well: dict[str, str]) -> None:
    code, found = findings(well)
    assert (code, [finding for finding in found.values() if not finding["good"]]) == (0, [])
    assert "(DATABASE_URL)" in found["PostgreSQL"]["message"]
    assert found["pooler"]["message"] == "connections reach PostgreSQL directly"


def test_where_mails_go_is_said(well: dict[str, str], tmp_path: Path) -> None:
    _, found = findings({**well, "ROWCALL_HOME": str(tmp_path)})
    assert found["emails"]["message"] == f"written to {tmp_path}/mail, not sent: set ROWCALL_SMTP_URL to send them"
    smtp = {"ROWCALL_SMTP_URL": "smtp://me:hush@mail.example", "ROWCALL_MAIL_FROM": "shop@example.com"}
    assert findings({**well, **smtp})[1]["emails"]["message"] == "will be sent through mail.example (not tried)"


def test_every_setting_is_shown_with_its_source_and_no_secret(well: dict[str, str]) -> None:
    shown = rowcall({**well, "ROWCALL_LEASE": "99"}, "doctor", "--verbose").stdout
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith(("ROWCALL_", "DATABASE_URL"))}
    assert set(lines) == {setting.variable for setting in settings.all_settings().values()}
    assert lines["ROWCALL_LEASE"].split()[1:] == ["99", "seconds", "environment"]
    assert lines["ROWCALL_POLL"].endswith("default")
    assert lines["DATABASE_URL"].split()[1:] == ["(set,", "not", "shown)", "environment"]
    password = well["DATABASE_URL"].split(":")[2].split("@")[0]
    assert password not in shown


def test_what_is_wrong_comes_last_and_settings_with_their_defaults_are_left_out(well: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        lines = rowcall({**well, "ROWCALL_API_PORT": port, "ROWCALL_LEASE": "99"}, "doctor").stdout.splitlines()
    blank = lines.index("")
    assert {"ROWCALL_LEASE", "ROWCALL_API_PORT", "DATABASE_URL"} <= {line.split()[0] for line in lines[1:blank]}
    assert not [line for line in lines[:blank] if line.endswith("default")]
    marks = [line[:4] for line in lines[blank + 1 :]]
    assert marks == ["ok  "] * (len(marks) - 1) + ["FIX "]
    assert lines[-1].startswith(f"FIX   API port: 127.0.0.1:{port} cannot be used")


def test_schedules_that_nobody_ticks(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        kept(connection)
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour'")
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert not found["schedules"]["good"]
    assert found["schedules"]["message"].startswith("no worker has ever ticked: start `rowcall worker run`")
    assert rowcall({**environment, "DATABASE_URL": fresh_url}, "worker", "once").returncode == 0
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert found["schedules"]["good"]
    assert found["schedules"]["message"].startswith("last ticked 20")
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour'")
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert "no worker has ticked since 20" in found["schedules"]["message"]


def test_after_migrate_alone_no_worker_has_ticked_until_the_first_one(
    environment: dict[str, str], fresh_url: str
) -> None:
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert (found["schedules"]["good"], found["schedules"]["message"]) == (True, "no worker has ticked yet")
    # Within the first seconds after the migration.
    with database.transaction(fresh_url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now()")
    assert rowcall({**environment, "DATABASE_URL": fresh_url}, "worker", "once").returncode == 0
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert found["schedules"]["message"].startswith("last ticked 20")


def test_a_schedule_whose_type_no_worker_knows(environment: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        asleep_since(connection, kept(connection, "lonely"), "2 hours")
        database.fetch_all(connection, "UPDATE rowcall.job_definitions SET job_type = 'of_a_newer_version'")
    assert rowcall({**environment, "DATABASE_URL": fresh_url}, "worker", "once").returncode == 0
    _, found = findings({**environment, "DATABASE_URL": fresh_url})
    assert not found["schedules"]["good"]
    assert "overdue and not yet processed: lonely (of_a_newer_version)" in found["schedules"]["message"]


def test_a_wrong_database_url(well: dict[str, str]) -> None:
    code, found = findings({**well, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/none"})
    assert (code, found["database"]["good"]) == (1, False)
    assert "no connection to postgresql://me:***@127.0.0.1:1/none" in found["database"]["message"]
    assert "check DATABASE_URL" in found["database"]["message"]


def test_a_database_url_that_is_none(well: dict[str, str]) -> None:
    code, found = findings({**well, "DATABASE_URL": "mysql://me:hush@db/app"})
    assert code == 1
    assert found["settings"]["message"].startswith("DATABASE_URL is invalid and must be a URL such as")


@pytest.mark.parametrize("password", ["hush/hush", "12/hush", "hush@hush", "hush?hush", "hush#hush"])
def test_a_password_that_was_not_escaped_is_not_repeated(well: dict[str, str], password: str) -> None:
    code, found = findings({**well, "DATABASE_URL": f"postgresql://me:{password}@127.0.0.1:5432/app"})
    assert code == 1
    assert "in which / ? # @ are written as %2F" in found["settings"]["message"]
    assert "hush" not in str(found)


def test_a_wrong_password_or_database(well: dict[str, str]) -> None:
    code, found = findings({**well, "DATABASE_URL": well["DATABASE_URL"].replace("rowcall:", "rowcall:not")})
    assert (code, "password authentication failed" in found["database"]["message"]) == (1, True)
    code, found = findings({**well, "DATABASE_URL": well["DATABASE_URL"] + "_gone"})
    assert (code, "does not exist" in found["database"]["message"]) == (1, True)


def revised(url: str, revision: str, fits: str) -> None:
    with database.transaction(url) as connection:
        written = {"revision": revision, "fits": fits}
        database.fetch_all(
            connection, "UPDATE rowcall.schema_version SET version_num = %(revision)s, fits = %(fits)s", written
        )


def test_a_newer_schema_that_this_code_still_fits(well: dict[str, str], fresh_url: str) -> None:
    revised(fresh_url, "9999", REVISION)
    _, found = findings({**well, "DATABASE_URL": fresh_url})
    assert found["schema"]["good"]
    assert found["schema"]["message"] == f"at 9999, newer than this code ({REVISION}), which still fits it"
    revised(fresh_url, "9999", "9999")
    _, found = findings({**well, "DATABASE_URL": fresh_url})
    assert not found["schema"]["good"]
    assert "too new for this code" in found["schema"]["message"]


def test_an_old_schema(well: dict[str, str], fresh_url: str) -> None:
    revised(fresh_url, "0000", "0000")
    code, found = findings({**well, "DATABASE_URL": fresh_url})
    assert (code, found["schema"]["good"]) == (1, False)
    assert found["schema"]["message"].endswith(f"older than this code needs ({REVISION}): run `rowcall migrate`")


class Other(BaseHTTPRequestHandler):
    """Another program's web server."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def other_program() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_port_in_use(well: dict[str, str], other_program: int) -> None:
    code, found = findings({**well, "ROWCALL_API_PORT": str(other_program)})
    assert (code, found["API port"]["good"]) == (1, False)
    assert "stop the program that uses it, or set ROWCALL_API_PORT to another" in found["API port"]["message"]


def test_a_port_on_which_our_own_api_answers_is_well_unless_it_serves_another_database(
    well: dict[str, str], fresh_url: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    api = start({**well, "ROWCALL_API_WORKERS": "1"}, "api", "--port", port)
    try:
        wait_until(
            lambda: "answers" in findings({**well, "ROWCALL_API_PORT": port})[1]["API port"]["message"], "it answers"
        )
        _, found = findings({**well, "ROWCALL_API_PORT": port})
        assert found["API port"] == {
            "subject": "API port",
            "good": True,
            "message": f"a Rowcall API answers on 127.0.0.1:{port}, and serves this database",
        }
        code, found = findings({**well, "ROWCALL_API_PORT": port, "DATABASE_URL": fresh_url})
        assert (code, found["API port"]["good"]) == (1, False)
        assert found["API port"]["message"].startswith(
            f"the Rowcall API on 127.0.0.1:{port} serves a different database from the one examined here: "
        )
        # It says nothing of a database that it cannot compare.
        nowhere = {**well, "ROWCALL_API_PORT": port, "DATABASE_URL": "postgresql://127.0.0.1:1/none"}
        found = findings(nowhere)[1]
        assert found["API port"]["message"] == f"a Rowcall API answers on 127.0.0.1:{port}"
    finally:
        api.terminate()
        api.communicate()


def test_an_app_that_is_not_there(well: dict[str, str]) -> None:
    code, found = findings({**well, "ROWCALL_APP": "no_such_shop"})
    assert (code, found["job types"]["good"]) == (1, False)


def test_a_clock_that_is_off(module_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    with database.transaction(module_url) as connection:
        assert clock(connection).good
        monkeypatch.setattr(time, "time", lambda: real() - 2700)
        off = clock(connection)
    assert not off.good
    assert off.message.startswith(
        "the database's clock is 2700.0 seconds ahead of this machine's: jobs follow the database's"
    )


def test_a_postgresql_that_is_too_old(module_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with database.transaction(module_url) as connection:
        major = connection.server_version // 10_000
        monkeypatch.setattr(examine, "OLDEST_MAJOR", major)
        assert postgres(connection, "DATABASE_URL").good
        monkeypatch.setattr(examine, "OLDEST_MAJOR", major + 1)
        old = postgres(connection, "DATABASE_URL")
    assert not old.good
    assert old.message.endswith(f"(DATABASE_URL) is too old: use {major + 1} or newer")


@pytest.mark.program("pgbouncer")
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("transaction", "connections go through a pooler in transaction mode: everything works except LISTEN"),
        ("session", "connections go through a pooler in session mode: everything works, but workers poll"),
    ],
)
def test_a_pooler_is_noticed_with_its_mode(well: dict[str, str], tmp_path: Path, mode: str, told: str) -> None:
    with pgbouncer(well["DATABASE_URL"], mode, tmp_path) as url:
        code, found = findings({**well, "DATABASE_URL": url})
    assert code == 0, found
    assert found["pooler"]["message"].startswith(told)


def test_a_run_that_waits_for_a_worker_that_is_not_there_is_reported(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.QUEUED, job_type="'from_the_future'", run_at="now() - interval '1 hour'")
    code, found = findings({**well, "DATABASE_URL": fresh_url})
    assert (code, found["due runs"]["good"]) == (1, False)
    assert "no worker that serves them: 1 of from_the_future in queue default" in found["due runs"]["message"]


def test_a_run_whose_worker_died_and_that_nobody_takes_over_is_reported(well: dict[str, str], fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        run_in(connection, Status.RUNNING, locked_until="now() - interval '1 hour'")
    code, found = findings({**well, "DATABASE_URL": fresh_url})
    assert (code, found["due runs"]["good"]) == (1, False)
    told = found["due runs"]["message"]
    assert "an expired lease and no worker that takes over: 1 of noop in queue default (since 2" in told


def test_a_role_without_rights_is_told_which_command_prints_the_grants(fresh_url: str, well: dict[str, str]) -> None:
    with role(fresh_url, "stranger") as made:
        with database.transaction(fresh_url) as connection:
            database.fetch_all(connection, f"GRANT USAGE ON SCHEMA rowcall TO {made.name}")
            database.fetch_all(connection, f"GRANT SELECT ON rowcall.schema_version TO {made.name}")
        _, found = findings({**well, "DATABASE_URL": made.url})
    told = found["database"]["message"]
    assert told.startswith("permission denied for ")
    assert told.endswith("`rowcall migrate --grants` prints the grants that this role needs")
