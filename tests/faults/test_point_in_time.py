"""docs/high-availability.md: after a restore to a point in time, what happened later is not simply repeated."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.errors import DatabaseUnreachable
from rowcall.local_postgres.programs import find_programs
from tests.packaging.test_backup import SEND, WORK, Machine
from tests.support.page import Reader, blocks
from tests.support.patroni import BACKUP, Cluster, cluster, started
from tests.support.ports import free_port
from tests.support.processes import wait_until

pytestmark = [pytest.mark.timeout(300), *(pytest.mark.program(name) for name in ("patroni", "etcd"))]

_, BASE, RESTORE, RECORD = blocks("high-availability.md", "sh")
TIME, RESTORED = "2026-11-28 12:00:00+00", "/var/lib/postgresql/restored"
# The base backup, which is named after its day.
MADE, COPIED = "base-$(date +%F)", "base-2026-11-28"


def archive(patroni: Cluster) -> None:
    """Begin a new file of WAL, and wait until the one before is in the archive."""
    with database.transaction(patroni.url) as connection:
        file = database.fetch_value(connection, "SELECT pg_walfile_name(pg_switch_wal())")
    wait_until((patroni.folder / "backup" / "wal" / file).exists, "the WAL is in the archive")


def given_to(patroni: Cluster, folder: Path) -> None:
    """Let PostgreSQL's user own what this process has copied for it."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, patroni.owner.uid, patroni.owner.gid)


def works(url: str) -> bool:
    try:
        with database.transaction(url) as connection:
            return not database.fetch_value(connection, "SELECT pg_is_in_recovery()")
    except DatabaseUnreachable:
        return False


def test_a_mail_that_was_sent_after_that_point_is_not_sent_again(tmp_path: Path) -> None:
    with cluster("machine", size=1) as patroni:
        Reader(tmp_path).type("rowcall new shop")
        machine = Machine(tmp_path / "shop", patroni.url)
        machine.type("rowcall migrate")
        machine.type(BASE.replace(BACKUP, str(patroni.folder / "backup")).replace(MADE, "base"))
        machine.type(SEND)
        with database.transaction(patroni.url) as connection:
            point = str(database.fetch_value(connection, "SELECT clock_timestamp()"))
        machine.type(WORK)
        assert machine.mails == 1
        archive(patroni)

        restored, port = patroni.folder / "restored", free_port()
        places = {BACKUP: str(patroni.folder / "backup"), RESTORED: str(restored), TIME: point, COPIED: "base"}
        commands = RESTORE
        for place, here in places.items():
            commands = commands.replace(place, here)
        machine.type(commands)
        given_to(patroni, restored)
        log = patroni.folder / "restored.log"
        server = [str(find_programs("machine").folder / "postgres"), "-D", str(restored), "-p", str(port)]
        with log.open("wb") as file, started(server, patroni.owner, file.fileno()) as process:
            try:
                url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
                wait_until(lambda: works(url), "the restored server accepts writes")
                after = Machine(tmp_path / "shop", url)
                assert "unfinished runs in the backup: 1 (due: 1)" in after.type(RECORD)
                after.type(WORK)
                assert after.mails == 1
                assert "may have happened: the database was restored from a backup" in after.type("rowcall runs show 1")
            finally:
                process.kill()
