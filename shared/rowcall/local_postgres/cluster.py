"""Creates the database cluster, completely or not at all."""

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

# For postgres --single, which reads one statement per line.  The role of API and worker owns only its database, so
# injected SQL can neither read files nor start programs.  PostgreSQL first looks in the schema with the user's name, so
# without the search_path it would create a team's unqualified tables in Rowcall's schema.
DATABASE_IS_MADE = f"""\
CREATE ROLE {USER} LOGIN PASSWORD '{{password}}'
CREATE DATABASE {DATABASE} OWNER {USER}
ALTER DATABASE {DATABASE} SET search_path = public
"""

LIMIT = 300.0  # seconds for each step; a slow disk needs a few, and a stuck one must not block the caller forever


def make(home: Home, programs: Programs, account: Account, durable: bool, lock: Lock) -> None:
    """Create the cluster under a temporary name, with its roles, passwords and database, then rename it.

    Unless `durable`, do not wait until all of it is on disk.
    The programs inherit the cluster's lock: if this process is killed, the next starter waits until they have ended.
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
    """Delete this file, link or folder if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def url(home: Home, port: int) -> str:
    """Return the URL of the server on this port."""
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
    """Return the command for single-user mode: it reads SQL from standard input and exits at the end."""
    # Its error messages are shown to users, so they must not contain the statement with the password.
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
        raise LocalPostgresError(
            f"{command[0]} did not finish within {LIMIT:g} seconds: is the disk responding?"
        ) from error
    if done.returncode != 0:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise LocalPostgresError(f"{command[0]} could not create the local server: {said}")


def _sync(folder: Path) -> None:
    """Flush the rename to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
