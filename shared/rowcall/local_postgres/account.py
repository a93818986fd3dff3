"""The OS user that the server runs as.  PostgreSQL refuses to run as root, so root uses another existing user."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rowcall.base.errors import LocalPostgresError

STAND_INS = ("postgres", "nobody")  # the users that root may run the server as; Rowcall never creates a user

# No variable of the caller's environment may affect the server: no PG* variable, locale or library path.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True)
class Account:
    """The user, group and supplementary groups of a child process, as parameters of `subprocess`; None keeps ours."""

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] | None = None

    @property
    def uid(self) -> int:
        """The ID of the user."""
        return os.geteuid() if self.user is None else self.user

    @property
    def gid(self) -> int:
        """The ID of the user's primary group."""
        return os.getegid() if self.group is None else self.group


OURSELVES = Account()


def user_name(uid: int) -> str:
    """Return the OS user's name, or the user ID if there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def claim(folder: Path) -> Account:
    """Create the server's folder if it is missing, and return its owner, who runs the server."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        raise LocalPostgresError(
            f"{folder} is a link or a file, not a folder: move it, or set ROWCALL_HOME to another folder"
        ) from error
    try:
        return _owner(descriptor, folder)
    finally:
        os.close(descriptor)


def run(
    account: Account,
    command: Sequence[str],
    *,
    stdin: str = "",
    descriptors: Sequence[int] = (),
    limit: float,
) -> subprocess.CompletedProcess[str]:
    """Run a program as this user, with a minimal environment and in the folder /, and wait for it to end."""
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=limit,
        cwd="/",
        env=ENVIRONMENT,
        umask=0o077,
        pass_fds=descriptors,
        user=account.user,
        group=account.group,
        extra_groups=account.groups,
    )


def _owner(descriptor: int, folder: Path) -> Account:
    status = os.fstat(descriptor)
    owner = status.st_uid
    if os.geteuid() != 0:
        if owner != os.geteuid():
            raise LocalPostgresError(
                f"{folder} belongs to the OS user {user_name(owner)} and you are {user_name(os.geteuid())}:"
                " run Rowcall as that user, or set ROWCALL_HOME to one of your folders"
            )
        account = OURSELVES
    elif owner != 0:
        account = _account(owner, status.st_gid)
    else:
        account = _stand_in()
        os.chown(descriptor, account.uid, account.gid)
    os.chmod(descriptor, 0o700)
    return account


def _account(uid: int, gid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(uid, gid, ())
    return Account(uid, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))


def _stand_in() -> Account:
    for name in STAND_INS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return _account(entry.pw_uid, entry.pw_gid)
    raise LocalPostgresError(
        f"PostgreSQL does not run as root, and this machine has no OS user {' or '.join(STAND_INS)} to run it as:"
        " run Rowcall as an ordinary user, or set DATABASE_URL"
    )
