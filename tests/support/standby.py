"""A leader and a hot standby that follows it, as streaming replication on this machine."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from psycopg2.errors import SerializationFailure

from rowcall.base import database
from rowcall.base.database.wal import leader_position, standby_position
from rowcall.local_postgres import account
from rowcall.local_postgres.programs import find_programs
from rowcall.testing.server import superuser_url
from rowcall_migrations.migrate import migrate
from tests.support.patroni import started
from tests.support.ports import free_port
from tests.support.processes import children_of, state_of, wait_until
from tests.support.server import own_server

# A query is cancelled as soon as replay needs what it is reading.
SETTINGS = {"fsync": "off", "max_standby_streaming_delay": "0", "unix_socket_directories": ""}


class StandbyServer:
    """A standby; the test pauses, freezes, kills and promotes it."""

    def __init__(self, folder: Path, leader_url: str, superuser: str, programs: Path) -> None:
        self._leader_url = leader_url
        self._folder = folder / "data"
        self._owner = account.claim(folder)
        self._programs = programs
        self._port = free_port()
        self.url = self.instead_of(leader_url)
        words = [programs / "pg_basebackup", "--pgdata", self._folder, "--dbname", superuser]
        command = [*map(str, words), "--checkpoint=fast", "--write-recovery-conf", "--no-sync"]
        done = account.run(self._owner, command, limit=60)
        assert done.returncode == 0, done.stderr
        self.start()

    def instead_of(self, leader_url: str) -> str:
        """Return the URL of the same database and role on the standby."""
        return leader_url.rpartition(":")[0] + f":{self._port}/" + leader_url.rpartition("/")[2]

    def start(self) -> None:
        """Start it, and wait until it has what the leader has."""
        options = {**SETTINGS, "listen_addresses": "127.0.0.1", "port": str(self._port)}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with self._folder.with_suffix(".log").open("ab") as log:
            command = [str(self._programs / "postgres"), "-D", str(self._folder), *words]
            self._process = started(command, self._owner, log.fileno())
        wait_until(self._accepts, "the standby accepts connections")
        self.catch_up()

    def catch_up(self) -> None:
        """Wait until it has replayed what the leader has written by now."""
        with database.internal_transaction(self._leader_url) as connection:
            written = leader_position(connection)["position"]

        def has_replayed() -> bool:
            with suppress(SerializationFailure), database.internal_transaction(self.url) as connection:
                return bool(standby_position(connection)["position"] >= written)
            return False

        wait_until(has_replayed, "the standby has replayed what was written")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Replay nothing in the block, and catch up after it."""
        self.run("SELECT pg_wal_replay_pause()")
        paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
        wait_until(lambda: self.run(paused), "replay is paused")
        try:
            yield
        finally:
            self.run("SELECT pg_wal_replay_resume()")
            self.catch_up()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all of its processes in the block; the kernel still accepts connections."""
        processes = [self._process.pid, *children_of(self._process.pid)]
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        wait_until(lambda: all(state_of(process) in ("T", None) for process in processes), "the standby is frozen")
        try:
            yield
        finally:
            for process in processes:
                with suppress(ProcessLookupError):  # one that had begun to end
                    os.kill(process, signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def promote(self) -> None:
        """Let it become a leader of its own."""
        self.run("SELECT pg_promote()")
        wait_until(lambda: self.run("SELECT NOT pg_is_in_recovery()"), "it is promoted")

    def run(self, statement: str) -> object:
        """Run a statement on it, and return its first value; repeat it if replay cancels it."""
        while True:
            with suppress(SerializationFailure), database.internal_transaction(self.url) as connection:
                return database.fetch_value(connection, statement)

    def _accepts(self) -> bool:
        assert self._process.poll() is None, self._folder.with_suffix(".log").read_text()
        with suppress(Exception):
            return self.run("SELECT pg_is_in_recovery()") is True
        return False


class Leader:
    """A server with Rowcall's schema, from which standbys are made."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self.url = url

    @contextmanager
    def standby(self, source: str = "auto") -> Iterator[StandbyServer]:
        """Yield a new standby of this server, and end it after the block."""
        # Not in pytest's folder, which the user that root runs PostgreSQL as cannot enter.
        with tempfile.TemporaryDirectory() as folder:
            owner = account.claim(Path(folder))
            programs = find_programs(source, account=owner).folder
            made = StandbyServer(Path(folder), self.url, superuser_url(self._folder, self.url), programs)
            try:
                yield made
            finally:
                made.kill()

    def succeeded_by(self, promoted: StandbyServer) -> Leader:
        """Return a standby that was promoted as the new leader."""
        return Leader(self._folder, promoted.url)

    def run(self, statement: str, parameters: Mapping[str, object] | None = None) -> object:
        """Run a statement, and return its first value."""
        with database.internal_transaction(self.url) as connection:
            return database.fetch_value(connection, statement, parameters)


@contextmanager
def leader(folder: Path) -> Iterator[Leader]:
    """Yield a migrated server for the block."""
    with own_server(folder) as server:
        migrate(server.url, lock_timeout=3)
        yield Leader(folder, server.url)
