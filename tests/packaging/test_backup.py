"""docs/backup.md, typed word for word: an email that was sent after the backup is not sent again after the restore."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from psycopg2.extensions import parse_dsn

from rowcall.base import database
from tests.support.page import Reader, blocks

DUMP, RECORD, LIST, RESOLVE, SKIP, LOCAL, CHECK = blocks("backup.md", "sh")

SEND = 'rowcall enqueue shop_weekly_report \'{"week": "2026-01-12"}\'\n'
WORK = "rowcall worker once --max-time 20\n"


class Machine(Reader):
    """The folder of an app, and its database."""

    def __init__(self, folder: Path, url: str) -> None:
        # Port 0: another API on this machine serves a different database, which doctor reports.
        super().__init__(folder, url, ROWCALL_APP="shop", ROWCALL_HOME=str(folder / "home"), ROWCALL_API_PORT="0")
        self.url = url

    @property
    def mails(self) -> int:
        """How many emails were sent."""
        return len(list((self.folder / "home" / "mail").glob("*")))


@pytest.fixture
def machine(tmp_path: Path, fresh_url: str) -> Machine:
    Reader(tmp_path).type("rowcall new shop")
    return Machine(tmp_path / "shop", fresh_url)


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
    assert "may have happened: the database was restored from a backup" in machine.type("rowcall runs show 1")
    [line] = [line for line in machine.type(LIST).splitlines() if "sent_emails" in line]
    assert "@rowcall.invalid" not in machine.type("rowcall effects list --wide --state unknown")
    effect_id, run_id = re.findall(r"\b\d+\b", line)[0], "1"
    again = RESOLVE.replace(" 12 ", f" {effect_id} ").replace("4711", run_id)
    assert f"run {run_id} is queued" in machine.type(again)
    machine.type(WORK)
    assert machine.mails == 2
    assert "succeeded" in machine.type(f"rowcall runs show {run_id}")


def test_the_local_server_runs_while_it_is_restored(machine: Machine) -> None:
    del machine.environment["DATABASE_URL"]
    machine.environment["ROWCALL_POSTGRES"] = "auto"
    machine.type("rowcall migrate")
    machine.type(SEND + LOCAL)
    assert "unfinished runs in the backup: 1 (due: 1)" in machine.type(RECORD)


def test_the_times_since_the_backup_can_be_left_out(machine: Machine) -> None:
    machine.type("rowcall migrate")
    with database.transaction(machine.url) as connection:
        due = "UPDATE rowcall.job_definitions SET next_run_at = next_run_at - interval '2 weeks'"
        database.fetch_all(connection, f"{due} WHERE name = 'shop-weekly-report'")
    machine.type(DUMP)
    restore(machine)
    machine.type(RECORD)
    assert "is active, due next" in machine.type(SKIP)
    machine.type(WORK)
    assert "no runs match" in machine.type("rowcall runs list --type shop_weekly_report")
    assert "paused" in machine.type("rowcall definitions show shop-weekly-report")


def test_a_copy_can_be_checked(machine: Machine) -> None:
    machine.type("rowcall migrate")
    with database.transaction(machine.url) as connection:
        database.fetch_all(connection, "UPDATE rowcall.schedule_ticks SET ticked_at = now() - interval '1 hour'")
    machine.type(DUMP)
    name = parse_dsn(machine.url)["dbname"]
    copy = CHECK.replace("shop_check", f"{name}_check")
    # An app on SQLAlchemy 2.1 can import its models only with this form.
    written, driver = f"postgresql+psycopg2://localhost/{name}_check", "postgresql+psycopg2:"
    assert f"DATABASE_URL={written} rowcall doctor" in copy
    copy = copy.replace(written, machine.url.replace(name, f"{name}_check").replace("postgresql:", driver, 1))
    try:
        told = machine.type(copy.replace("rowcall doctor", "rowcall doctor || true"))
    finally:
        machine.type(f"dropdb --if-exists {name}_check")
    assert re.search(r"ok +schema", told)
    assert re.findall(r"FIX +(\w+)", told) == ["schedules"]
