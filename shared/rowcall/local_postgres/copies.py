"""Copies of the wheel's programs, for a server that cannot run them in place.

If the virtual environment is in a folder that only its owner may enter (/root, a private checkout), another OS user
cannot run its programs.  Also, initdb passes its own path to a shell, which interprets `$` and quotes in it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rowcall.base.errors import LocalPostgresError
from rowcall.local_postgres.account import OURSELVES, Account
from rowcall.local_postgres.locks import Lock, LockBusy, exclusive, shared
from rowcall.local_postgres.programs import Programs, ask_version, wheel_package

PREFIX = "rowcall-postgres"
NEEDED = ("postgres", "initdb")  # the programs to copy; the folders lib and share are copied too
USELESS = shutil.ignore_patterns("*.a", "pkgconfig", "pgxs", "__pycache__")  # for building extensions only
PATIENCE = 5.0  # seconds to wait for another process that is removing the copy


def reachable(programs: Programs, account: Account) -> tuple[Programs, Lock | None]:
    """Return these programs, or a copy that this account can run and the lock that protects the copy from removal."""
    if programs.source != "wheel" or _runs(programs, account):
        return programs, None
    reasons = []
    for base in _bases():
        try:
            return _copy(programs, account, base)
        except (LocalPostgresError, OSError) as error:
            reasons.append(f"{base}: {error}")
    raise LocalPostgresError(
        f"the OS user that runs the server cannot run the programs in {programs.folder}, and they could not be copied"
        f" ({'; '.join(reasons)}): install PostgreSQL on this machine, or move Rowcall to a folder that all users may"
        " enter"
    )


def remove_copies() -> None:
    """Delete the copies of this installation's programs that no server uses."""
    package = wheel_package()
    if package is None:
        return
    for base in _bases():
        for copy in base.glob(f"{_family(package)}-*"):
            if _trusted(copy):
                _remove(copy)


def _runs(programs: Programs, account: Account) -> bool:
    if re.search(r"[\"`$\\\n]", str(programs.folder)):
        return False
    if account == OURSELVES:
        return True
    try:
        ask_version(programs.folder, account)
    except LocalPostgresError:
        return False
    return True


def _copy(programs: Programs, account: Account, base: Path) -> tuple[Programs, Lock]:
    """Return the existing copy in this folder, or create one."""
    install = programs.folder.parent
    package = install.parent
    made = (programs.folder / "postgres").stat().st_mtime_ns
    copy = base / f"{_family(package)}-{programs.version}-{made:x}"
    lock = _join(copy) or _build(copy, package, install) or _join(copy)
    if lock is None:
        raise LocalPostgresError(f"{copy} keeps disappearing: is another process removing it?")
    try:
        copied = replace(programs, folder=copy / package.name / install.name / "bin")
        ask_version(copied.folder, account)
    except BaseException:
        lock.close()
        raise
    return copied, lock


def _join(copy: Path) -> Lock | None:
    """Take a shared lock on the copy; return None if there is no copy."""
    if not os.path.lexists(copy):
        return None
    if not _trusted(copy):
        raise LocalPostgresError(f"{copy} is not a folder that only you can write to: remove it")
    try:
        return shared(copy / "lock", PATIENCE)
    except FileNotFoundError:
        return None
    except LockBusy:
        raise LocalPostgresError(f"{copy} is being removed: try again") from None


def _build(copy: Path, package: Path, install: Path) -> Lock | None:
    """Create the copy under a temporary name and rename it, so that no process sees an incomplete one.

    Return None if another process was faster.
    """
    draft = Path(tempfile.mkdtemp(prefix=f"{copy.name}.draft-", dir=copy.parent))
    lock = shared(draft / "lock", 0)
    try:
        _fill(draft, package, install)
        draft.rename(copy)
    except OSError as error:
        lock.close()
        shutil.rmtree(draft, ignore_errors=True)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return None
        raise
    return lock


def _fill(draft: Path, package: Path, install: Path) -> None:
    target = draft / package.name / install.name
    (target / "bin").mkdir(parents=True)
    for name in NEEDED:
        shutil.copyfile(install / "bin" / name, target / "bin" / name)
    for source, goal in _folders(package, install, draft):
        shutil.copytree(source, goal, ignore=USELESS, copy_function=shutil.copyfile)
    # Readable and executable for all, whatever the umask and the wheel's modes are.
    for parent, _, files in os.walk(draft):
        Path(parent).chmod(0o755)
        for name in files:
            (Path(parent) / name).chmod(0o755)
    (draft / "lock").chmod(0o600)


def _folders(package: Path, install: Path, draft: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the folders that the programs need, and their places in the copy; libraries are found by relative paths."""
    for name in ("lib", "share"):
        yield install / name, draft / package.name / install.name / name
    for libraries in (package.with_name(f"{package.name}.libs"), package / ".dylibs"):
        if libraries.is_dir():
            yield libraries, draft / libraries.relative_to(package.parent)


def _remove(copy: Path) -> None:
    """Delete a copy unless a server uses it; rename it first, so that no process uses an incomplete one."""
    with contextlib.suppress(LockBusy, FileNotFoundError), exclusive(copy / "lock", 0):
        doomed = Path(tempfile.mkdtemp(prefix=f"{copy.name}.doomed-", dir=copy.parent))
        copy.rename(doomed)
        shutil.rmtree(doomed)


def _trusted(copy: Path) -> bool:
    """Return whether this is a folder that only we can have written to."""
    found = copy.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _family(package: Path) -> str:
    """Return the common prefix of the names of all copies of this installation, in any version."""
    place = hashlib.sha256(os.fsencode(package)).hexdigest()[:12]
    return f"{PREFIX}-{os.geteuid()}-{place}"


def _bases() -> list[Path]:
    folders = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - a copy there is trusted only if it is ours
    return [Path(folder) for folder in dict.fromkeys(folders)]
