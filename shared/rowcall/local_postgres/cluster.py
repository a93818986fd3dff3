"""Making the database cluster: whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.account import Account, run
from rowcall.local_postgres.home import Doorway, Home
from rowcall.local_postgres.locks import Lock
from rowcall.local_postgres.programs import Programs

USER = DATABASE = "rowcall"
SUPERUSER = "postgres"

# For postgres --single, which takes a line for a statement.  API and worker own their database, and nothing else: who
# makes them run SQL of his own reads no files and starts no programs with it.  PostgreSQL looks first in the schema
# that has the user's name: a team's unqualified tables would land in Rowcall's.
DATABASE_IS_MADE = f"""\
CREATE ROLE {USER} LOGIN PASSWORD '{{password}}'
CREATE DATABASE {DATABASE} OWNER {USER}
ALTER DATABASE {DATABASE} SET search_path = public
"""

LIMIT = 300.0  # seconds for each step; a slow disk needs a few, a stuck one must not hang the caller for ever


def make(home: Home, programs: Programs, account: Account, durable: bool, lock: Lock) -> None:
    """Make the cluster beside its place, with its roles, passwords and database, then rename it into its place.

    Unless `durable`, it is not waited for until all of it is on the disk.
    The programs inherit the cluster's lock: if this process is killed, the next starter waits until they ended.
    """
    clear(home.draft)
    for file in (home.password, home.superuser_password):
        _write_password(file, account)
    with home.doorway() as doorway:
        inherited = (*doorway.descriptors, lock.fileno())
        _step(account, _initdb(home, programs, doorway, durable), "", inherited)
        sql = DATABASE_IS_MADE.format(password=home.read_password())
        _step(account, _single(home, programs, doorway, durable), sql, inherited)
    home.draft.rename(home.data)
    if durable:
        _sync(home.cluster)


def clear(path: Path) -> None:
    """Delete this file, link or folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def url(home: Home, port: int) -> str:
    """How clients reach the server on this port."""
    return f"postgresql://{USER}:{home.read_password()}@127.0.0.1:{port}/{DATABASE}"


def _write_password(path: Path, account: Account) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchown(descriptor, account.uid, account.gid)
        file.write(secrets.token_urlsafe(24) + "\n")


def _initdb(home: Home, programs: Programs, doorway: Doorway, durable: bool) -> list[str]:
    return [
        str(programs.folder / "initdb"),
        f"--pgdata={doorway.path}/{home.draft.name}",
        f"--username={SUPERUSER}",
        f"--pwfile={doorway.path}/{home.superuser_password.name}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--no-instructions",
        *([] if durable else ["--no-sync"]),
    ]


def _single(home: Home, programs: Programs, doorway: Doorway, durable: bool) -> list[str]:
    """PostgreSQL in single-user mode: it reads SQL from standard input and exits at its end."""
    # What it says of an error is shown, and must not repeat a statement with a password.
    quiet = "log_min_error_statement=panic"
    settings = ["exit_on_error=on", quiet, f"fsync={'on' if durable else 'off'}"]
    return [
        str(programs.folder / "postgres"),
        "--single",
        *(word for setting in settings for word in ("-c", setting)),
        "-D",
        f"{doorway.path}/{home.draft.name}",
        "postgres",
    ]


def _step(account: Account, command: list[str], stdin: str, inherited: tuple[int, ...]) -> None:
    try:
        done = run(account, command, stdin=stdin, descriptors=inherited, limit=LIMIT)
    except subprocess.TimeoutExpired as error:
        raise LocalPostgresError(f"{command[0]} was not done after {LIMIT:g} seconds: is the disk stuck?") from error
    if done.returncode != 0:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise LocalPostgresError(f"{command[0]} could not make the local database: {said}")


def _sync(folder: Path) -> None:
    """Put the rename itself on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
