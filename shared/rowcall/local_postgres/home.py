"""The layout of ROWCALL_HOME, and the state file that says how to reach the running server."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from rowcall.base.errors import LocalPostgresError

# For messages: how to start with an empty database.
REMOVE = "`python -m rowcall.local_postgres remove`, which deletes the data"

# Git ignores a folder whose .gitignore contains this.  ROWCALL_HOME contains keys and data.
IGNORE_EVERYTHING = "*\n"

LOG_LIMIT = 5_000_000  # bytes; a longer log is renamed at the next start, which deletes the one renamed before


@dataclass(frozen=True)
class State:
    """How to reach the server, as last recorded; valid only if `running` is true and the keeper is alive."""

    running: bool
    port: int
    url: str
    version: str
    programs: str
    source: str

    @classmethod
    def read(cls, path: Path) -> State | None:
        """Read the state file; return None if there is no valid one."""
        try:
            noted = json.loads(path.read_bytes())
            return cls(**{field.name: noted[field.name] for field in fields(cls)})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Replace the state file atomically; only its owner can read it, because it contains the password."""
        fresh = path.with_name(path.name + ".new")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=2)
        fresh.replace(path)

    @classmethod
    def withdraw(cls, path: Path) -> None:
        """Record that the server is not running; keep its port for the next start."""
        noted = cls.read(path)
        if noted is not None and noted.running:
            replace(noted, running=False).write(path)


def make_home(folder: Path) -> None:
    """Create ROWCALL_HOME if it is missing; if it is empty, make git ignore it."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        (folder / ".gitignore").write_text(IGNORE_EVERYTHING)


@dataclass(frozen=True)
class Home:
    """The paths of one local server.  Only `cluster` belongs to the OS user that the server runs as."""

    folder: Path

    @property
    def cluster(self) -> Path:
        """The folder that the server may read and write."""
        return self.folder / "postgres"

    @property
    def data(self) -> Path:
        """The data directory; if it exists, it is complete."""
        return self.cluster / "data"

    @property
    def draft(self) -> Path:
        """The data directory while it is created; an existing one is incomplete."""
        return self.cluster / "data.new"

    @property
    def password(self) -> Path:
        """The password of the role that API and worker use."""
        return self.cluster / "password"

    @property
    def superuser_password(self) -> Path:
        """The superuser's password, for operators and for the test kit."""
        return self.cluster / "superuser_password"

    @property
    def state(self) -> Path:
        """The state file, which says how to reach the server."""
        return self.folder / "postgres.json"

    @property
    def log(self) -> Path:
        """The log of the server and its keeper."""
        return self.folder / "postgres.log"

    @property
    def older_log(self) -> Path:
        """The previous log, renamed when it grew too long."""
        return self.folder / "postgres.log.1"

    @property
    def locks(self) -> Path:
        """The folder of the lock files."""
        return self.folder / "postgres.locks"

    @property
    def start_lock(self) -> Path:
        """Held exclusively by the process that starts, joins or removes the server."""
        return self.locks / "start"

    @property
    def users_lock(self) -> Path:
        """Held shared by every process that uses the server, and exclusively by a keeper that is stopping it."""
        return self.locks / "users"

    @property
    def keeper_lock(self) -> Path:
        """Held exclusively by the keeper as long as it is alive."""
        return self.locks / "keeper"

    @property
    def cluster_lock(self) -> Path:
        """Held by every process that can write to the cluster: initdb, the postmaster and its children."""
        return self.locks / "cluster"

    @property
    def everything(self) -> tuple[Path, ...]:
        """All files and folders that Rowcall creates here, in the order of their deletion."""
        own = (self.cluster, self.state, self.log, self.older_log, self.locks)
        ignore = self.folder / ".gitignore"
        return (*own, ignore) if ignore.is_file() and ignore.read_text() == IGNORE_EVERYTHING else own

    def prepare(self) -> None:
        """Create the home and its lock folder if they are missing."""
        make_home(self.folder)
        self.locks.mkdir(mode=0o700, exist_ok=True)

    def refuse_data_of_others(self) -> None:
        """Refuse data that Rowcall did not create, before anything is created next to it.

        Rowcall creates the lock folder before its data, and deletes it after.  Without that folder, the data may still
        be a copy of Rowcall's, which has a password.
        """
        if not self.locks.exists() and self.major() is not None:
            self.read_password()

    def read_password(self) -> str:
        """Read the password of the role that API and worker use."""
        try:
            descriptor = os.open(self.password, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise LocalPostgresError(
                f"{self.password} is missing, and the database cannot be used without it:"
                f" restore the file, or run {REMOVE}"
            ) from None
        with os.fdopen(descriptor, encoding="ascii") as file:
            return file.read().strip()

    def major(self) -> int | None:
        """Return the major version of PostgreSQL that created the data, or None if there is no data."""
        if not self.data.exists():
            return None
        note = self.data / "PG_VERSION"
        text = note.read_text("ascii", errors="replace").strip()
        if not text.isdecimal():
            raise LocalPostgresError(
                f"{note} names no PostgreSQL version, but contains {text!r}: restore the data, or run {REMOVE}"
            )
        return int(text)

    def open_log(self) -> int:
        """Open the log for appending, and return its descriptor; first rename a log that is too long."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_LIMIT:
                self.log.replace(self.older_log)
        return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    @contextlib.contextmanager
    def doorway(self) -> Iterator[Doorway]:
        """Yield a path to the cluster folder for a child process, whichever user it runs as."""
        if not Path("/proc/self/fd").is_dir():
            yield Doorway(str(self.cluster), ())
            return
        descriptor = os.open(self.cluster, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            yield Doorway(f"/proc/self/fd/{descriptor}", (descriptor,))
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class Doorway:
    """A path to the cluster folder, and the descriptors that a child must inherit to use it.

    Linux follows /proc/self/fd/N without checking permissions on the folders above.  So a child of root can reach a
    cluster in a folder that only root may enter.  Also, no special characters of the real path reach a shell.
    """

    path: str
    descriptors: tuple[int, ...]
