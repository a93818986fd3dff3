"""docs/backup.md, typed word for word: a mail that was sent after the backup is not sent again after the restore."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import database
from rowcall.local_postgres.programs import find_programs
from tests.support.processes import LIMIT_SECONDS, ROOT

PAGE = (ROOT / "docs" / "backup.md").read_text()
DUMP, RECORD, LIST, RESOLVE, CHECK = (
    re.sub("^ +", "", block, flags=re.M) for block in re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE, re.M | re.S)
)

SEND = 'rowcall enqueue shop_weekly_report \'{"week": "2026-01-12"}\'\n'
WORK = "rowcall worker once --max-time 20\n"


class Machine:
    """A folder with an app, and its database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        parsed = parse_dsn(url)
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("ROWCALL_", "PYTHON", "PG"))}
        self._environment = {
            **bare,
            "PATH": f"{Path(sys.executable).parent}:{find_programs().folder}:{os.environ['PATH']}",
            "DATABASE_URL": url,
            "ROWCALL_APP": "shop",
            "ROWCALL_HOME": str(folder / "home"),
            **{f"PG{name.upper()}": value for name, value in parsed.items() if name in ("host", "port", "user")},
            "PGPASSWORD": parsed.get("password", ""),
        }

    def type(self, commands: str, code: int = 0) -> str:
        """Type these commands in the app's folder; return what they print."""
        done = subprocess.run(
            ["/bin/sh", "-ec", commands],
            cwd=self.folder / "shop",
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    @property
    def mails(self) -> int:
        """How many mails were sent."""
        return len(list((self.folder / "home" / "mail").glob("*")))


@pytest.fixture
def machine(tmp_path: Path, fresh_url: str) -> Machine:
    (tmp_path / "shop").mkdir()
    made = Machine(tmp_path, fresh_url)
    made.type(f"cd {tmp_path}; rmdir shop; ROWCALL_APP= rowcall new shop")
    return made


def restore(machine: Machine) -> None:
    """Restore the backup over what the database has now."""
    with database.transaction(machine.url) as connection:
        database.fetch_all(connection, "DROP SCHEMA rowcall CASCADE")
    machine.type('pg_restore --no-owner --dbname "$DATABASE_URL" shop.dump')


def test_a_mail_of_the_lost_hours_is_sent_again_only_if_the_operator_says_so(machine: Machine) -> None:
    machine.type(SEND)
    machine.type(DUMP)
    machine.type(WORK)
    assert machine.mails == 1
    restore(machine)
    assert "unfinished runs in the backup: 1 (due: 1)" in machine.type(RECORD)
    machine.type(WORK)
    assert machine.mails == 1
    [line] = [line for line in machine.type(LIST).splitlines() if "sent_emails" in line]
    effect_id, run_id = re.findall(r"\b\d+\b", line)[0], "1"
    again = RESOLVE.replace(" 12 ", f" {effect_id} ").replace("4711", run_id)
    assert f"run {run_id} is queued" in machine.type(again)
    machine.type(WORK)
    assert machine.mails == 2
    assert "succeeded" in machine.type(f"rowcall runs show {run_id}")


def test_a_copy_can_be_checked(machine: Machine) -> None:
    machine.type(DUMP)
    name = parse_dsn(machine.url)["dbname"]
    copy = CHECK.replace("shop_check", f"{name}_check")
    copy = copy.replace(f"postgresql://localhost/{name}_check", machine.url.replace(name, f"{name}_check"))
    try:
        told = machine.type(copy.replace("rowcall doctor", "rowcall doctor || true"))
    finally:
        machine.type(f"dropdb --if-exists {name}_check")
    assert re.search(r"ok +schema", told)
