"""Starts, awaits and stops PostgreSQL's main process, a child that dies with its keeper."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from rowcall.base.child_processes import dies_with_us
from rowcall.base.errors import LocalPostgresError, PortInUse
from rowcall.local_postgres.account import ENVIRONMENT, Account
from rowcall.local_postgres.home import Doorway, Home
from rowcall.local_postgres.locks import Lock

START_LIMIT = 60.0  # seconds; recovery after a crash may have to read a gigabyte of WAL
READY_POLL = 0.01  # seconds
# A fast shutdown (SIGINT) writes a checkpoint; after an immediate one (SIGQUIT), the next start needs recovery.
STOPS = ((signal.SIGINT, 5.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 3.0))


class Postmaster:
    """One start of the server, on one port."""

    def __init__(self, process: subprocess.Popen[bytes], home: Home, port: int, log_start: int) -> None:
        self.port = port
        self.started = time.monotonic()
        self._process = process
        self._home = home
        self._log_start = log_start

    @classmethod
    def start(
        cls, home: Home, programs: Path, account: Account, port: int, options: Mapping[str, str], lock: Lock
    ) -> Postmaster:
        """Start the server; all its processes inherit the cluster's lock, so they have ended when the lock is free."""
        (home.data / "postmaster.pid").unlink(missing_ok=True)
        log_start = home.log.stat().st_size
        with home.doorway() as doorway:
            process = subprocess.Popen(
                _command(home, programs, port, options, doorway),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                cwd="/",
                env=ENVIRONMENT,
                umask=0o077,
                pass_fds=(*doorway.descriptors, lock.fileno()),
                user=account.user,
                group=account.group,
                extra_groups=account.groups,
                preexec_fn=dies_with_us(signal.SIGQUIT),
            )
        return cls(process, home, port, log_start)

    def wait_until_ready(self, told_to_stop: Callable[[], bool]) -> None:
        """Wait until the server accepts connections; raise PortInUse or LocalPostgresError if it does not."""
        deadline = self.started + START_LIMIT
        while not self._ready():
            if self.ended():
                raise self._failure()
            if told_to_stop() or time.monotonic() > deadline:
                raise LocalPostgresError(
                    f"the local PostgreSQL was stopped before it was ready, or was not ready after"
                    f" {START_LIMIT:g} seconds: see {self._home.log}"
                )
            time.sleep(READY_POLL)  # PostgreSQL reports that it is ready only in a file

    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Stop the server, if necessary with stronger signals."""
        for number, patience in STOPS:
            self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
                return

    def _ready(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            lines = (self._home.data / "postmaster.pid").read_text("utf-8", errors="replace").splitlines()
            return len(lines) > 7 and lines[7].strip() == "ready"
        return False

    def _failure(self) -> Exception:
        with self._home.log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._log_start)
            said = log.read()
        if "Address already in use" in said:
            return PortInUse(
                f"port {self.port} on 127.0.0.1 is used by another program:"
                " set ROWCALL_POSTGRES_PORT to a free port, or to 0 to pick one"
            )
        lines = "; ".join(said.strip().splitlines()[-3:])
        return LocalPostgresError(f"the local PostgreSQL did not start: {lines} (more in {self._home.log})")


def _command(home: Home, programs: Path, port: int, options: Mapping[str, str], doorway: Doorway) -> list[str]:
    settings = {
        "cluster_name": "rowcall",  # `ps` shows it with each process
        "log_destination": "stderr",
        "logging_collector": "off",
        **options,
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",  # socket paths must be short, and anyone who can enter the folder can connect
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return [str(programs / "postgres"), "-D", f"{doorway.path}/{home.data.name}", *words]
