"""The layout of ROWCALL_HOME, and the note that says how to reach the running server."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from rowcall.base.errors import LocalPostgresError

LOG_LIMIT = 5_000_000  # bytes; a longer log is set aside at the next start, and the one before it dropped


@dataclass(frozen=True)
class State:
    """How the server was last reached; true at this moment only if it says `running` and a keeper lives."""

    running: bool
    port: int
    url: str
    version: str
    programs: str
    source: str

    @classmethod
    def read(cls, path: Path) -> State | None:
        """The note's content; None if there is no readable note."""
        try:
            noted = json.loads(path.read_bytes())
            return cls(**{field.name: noted[field.name] for field in fields(cls)})
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, path: Path) -> None:
        """Replace the note in one step, readable for its owner alone: it holds the password."""
        fresh = path.with_name(path.name + ".new")
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file, indent=2)
        fresh.replace(path)

    @classmethod
    def withdraw(cls, path: Path) -> None:
        """Say that the server does not run now; its port stays noted for the next time."""
        noted = cls.read(path)
        if noted is not None and noted.running:
            replace(noted, running=False).write(path)


@dataclass(frozen=True)
class Home:
    """The paths of one local server.  Only `cluster` belongs to the OS user that the server runs as."""

    folder: Path

    @property
    def cluster(self) -> Path:
        """What the server itself may read and write."""
        return self.folder / "postgres"

    @property
    def data(self) -> Path:
        """The data directory; it is there only when it is whole."""
        return self.cluster / "data"

    @property
    def draft(self) -> Path:
        """A data directory in the making; whatever is found here was left half-made."""
        return self.cluster / "data.new"

    @property
    def password(self) -> Path:
        """The password of the role that API and worker use."""
        return self.cluster / "password"

    @property
    def superuser_password(self) -> Path:
        """The superuser's password, for an operator who needs it; nothing of Rowcall does."""
        return self.cluster / "superuser_password"

    @property
    def state(self) -> Path:
        """The note of how the server is reached."""
        return self.folder / "postgres.json"

    @property
    def log(self) -> Path:
        """The log of the server and its keeper."""
        return self.folder / "postgres.log"

    @property
    def older_log(self) -> Path:
        """The log set aside when it grew too long."""
        return self.folder / "postgres.log.1"

    @property
    def locks(self) -> Path:
        """Folder of the lock files."""
        return self.folder / "postgres.locks"

    @property
    def start_lock(self) -> Path:
        """Held exclusively by the process that starts, joins or removes the server."""
        return self.locks / "start"

    @property
    def users_lock(self) -> Path:
        """Shared by every process that uses the server; held alone by a keeper that is stopping it."""
        return self.locks / "users"

    @property
    def keeper_lock(self) -> Path:
        """Held alone by the keeper for life."""
        return self.locks / "keeper"

    @property
    def cluster_lock(self) -> Path:
        """Held by every process that can write to the cluster: initdb, the postmaster and its children."""
        return self.locks / "cluster"

    @property
    def everything(self) -> tuple[Path, ...]:
        """All that is ever made here, in the order of deleting it."""
        return (self.cluster, self.state, self.log, self.older_log, self.locks)

    def prepare(self) -> None:
        """Make the home and its lock folder where they are missing."""
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.locks.mkdir(mode=0o700, exist_ok=True)

    def read_password(self) -> str:
        """The cluster's password."""
        try:
            descriptor = os.open(self.password, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise LocalPostgresError(
                f"{self.password} is missing, so nobody can use the data beside it:"
                " restore the file, or `make clean` to start empty"
            ) from None
        with os.fdopen(descriptor, encoding="ascii") as file:
            return file.read().strip()

    def major(self) -> int | None:
        """PostgreSQL's major version the data was made by; None where there is none yet."""
        if not self.data.exists():
            return None
        note = self.data / "PG_VERSION"
        text = note.read_text("ascii", errors="replace").strip()
        if not text.isdecimal():
            raise LocalPostgresError(
                f"{note} names no PostgreSQL version but {text!r}: restore the data, or `make clean` to start empty"
            )
        return int(text)

    def open_log(self) -> int:
        """A descriptor that appends to the log, after setting a long one aside."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LOG_LIMIT:
                self.log.replace(self.older_log)
        return os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)

    @contextlib.contextmanager
    def doorway(self) -> Iterator[Doorway]:
        """The cluster folder's path for a child process, whichever user the child runs as."""
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
    """A name for the cluster folder, and the descriptors a child must inherit for the name to hold.

    Linux follows /proc/self/fd/N without asking for search permission on the folders above, so root's child
    reaches a cluster below folders that only root may enter; and no odd character of the path reaches a shell.
    """

    path: str
    descriptors: tuple[int, ...]
