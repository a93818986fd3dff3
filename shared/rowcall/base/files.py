"""Writes files in one folder atomically; no path or link leads out of the folder.

Each component of a path is opened from the handle of its parent, starting at the root, and none may be a symbolic link.
So a concurrent change cannot lead out of the folder.  A file is written under a hidden name, with a lock, in the same
folder, flushed to disk, and renamed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rowcall.base.clock import elapsed
from rowcall.base.errors import OutcomeUnknown, Unavailable, Unusable

# No name begins with a dot, which excludes `..`, hidden files and our temporary files.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=@+-]{0,99}")
LONGEST_PATH_CHARACTERS = 400

# Such as `.invoice.pdf.part`: a file with this name that is not locked was left behind by a killed writer.
TEMPORARY = re.compile(r"\..+\.part")

# A writer's new file may be locked by a sweep, which takes it for one that was left behind, but only for a moment.
SWEEP_SECONDS = 0.5
LOCK_STEP_SECONDS = 0.005

A_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
IN_THE_WAY = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG})


@dataclass(frozen=True)
class Written:
    """A file that was written to disk."""

    path: str
    sha256: str
    size: int


class Files:
    """The files in one folder and its subfolders; write() creates the folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._swept: set[str] = set()

    def write(self, path: str, content: bytes | Iterable[bytes]) -> Written:
        """Write or replace a file; a concurrent reader gets the old or the new content.

        Raises Unusable if the path is invalid, and Unavailable if the file cannot be written now.
        """
        *folders, name = _names(path)
        pieces = (content,) if isinstance(content, bytes) else content
        digest, size = hashlib.sha256(), 0
        with self._told(path), self._folder(folders, make=True) as folder:
            self._sweep("/".join(folders), folder)
            with _temporary(folder, f".{name}.part") as file:
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
                    size += len(piece)
                file.flush()
                os.fsync(file.fileno())
                os.rename(f".{name}.part", name, src_dir_fd=folder, dst_dir_fd=folder)
            try:
                os.fsync(folder)
            except OSError as error:
                raise OutcomeUnknown(
                    f"{path!r} has been written, but may be lost in a power failure: {error}"
                ) from error
        return Written(path, digest.hexdigest(), size)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        *folders, name = _names(path)
        with self._told(path):
            try:
                with self._folder(folders, make=False) as folder:
                    # Opening a named pipe must not block.
                    handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NO_LINK, dir_fd=folder)
            except FileNotFoundError:
                raise Unusable(f"there is no file {path!r}") from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Unusable(f"{path!r} is not a file")
        return os.fdopen(handle, "rb")

    def delete(self, path: str) -> bool:
        """Delete a file; return whether it existed."""
        *folders, name = _names(path)
        with self._told(path):
            try:
                with self._folder(folders, make=False) as folder:
                    os.unlink(name, dir_fd=folder)
                    os.fsync(folder)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _folder(self, names: Sequence[str], make: bool) -> Iterator[int]:
        """Open a folder below the root, and yield its handle."""
        if make:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The root itself may be a link, because the operator chose it.
        handle = os.open(self._root, A_FOLDER)
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=handle)
                        os.fsync(handle)
                inner = os.open(name, A_FOLDER | NO_LINK, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _sweep(self, name: str, folder: int) -> None:
        """Remove the temporary files of killed writers, before this process first writes to the folder."""
        if name in self._swept:
            return
        self._swept.add(name)
        for entry in os.listdir(folder):
            if TEMPORARY.fullmatch(entry):
                with suppress(OSError), _locked(folder, entry):
                    os.unlink(entry, dir_fd=folder)

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Translate the system's errors into Rowcall's."""
        try:
            yield
        except BlockingIOError:
            raise Unavailable(f"{path!r} is being written by another process") from None
        except OSError as error:
            if error.errno in IN_THE_WAY:
                raise Unusable(
                    f"the path {path!r} contains a link, a file where a folder should be, or a folder where a file"
                    " should be"
                ) from error
            root = self._root
            why = f"no space is left in {root}" if error.errno in FULL else f"the folder {root} cannot be used"
            raise Unavailable(f"{path!r}: {why} ({error.strerror})") from error


def _names(path: str) -> list[str]:
    """Split a path into its components; refuse it if one is unsafe."""
    names = path.split("/")
    if len(path) > LONGEST_PATH_CHARACTERS or not all(NAME.fullmatch(name) for name in names):
        raise Unusable(
            f"the path {path[:LONGEST_PATH_CHARACTERS]!r} must be names separated by /, at most"
            f" {LONGEST_PATH_CHARACTERS} characters in total; a name consists of 1 to 100 of the characters A-Z a-z 0-9"
            " _ . , = @ + - and begins with a letter, a digit or _"
        )
    return names


@contextmanager
def _temporary(folder: int, name: str) -> Iterator[BinaryIO]:
    """Open an empty, locked file for writing; remove it if the block fails."""
    with _locked(folder, name, os.O_CREAT) as handle:
        os.ftruncate(handle, 0)
        try:
            with os.fdopen(handle, "wb", closefd=False) as file:
                yield file
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise


@contextmanager
def _locked(folder: int, name: str, create: int = 0) -> Iterator[int]:
    """Open and lock the file with this name; raise BlockingIOError if another process has the lock."""
    while True:
        handle = os.open(name, os.O_RDWR | create | NO_LINK, 0o600, dir_fd=folder)
        try:
            _lock(handle, SWEEP_SECONDS if create else 0.0)
            # Its writer may have renamed it between our open and our lock.
            if _is_named(handle, folder, name):
                yield handle
                return
        finally:
            os.close(handle)


def _lock(handle: int, patience: float) -> None:
    """Lock a file; raise BlockingIOError if another process still has the lock after this many seconds."""
    until = elapsed() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if elapsed() >= until:
                raise
            time.sleep(LOCK_STEP_SECONDS)  # a blocking flock() has no deadline
        else:
            return


def _is_named(handle: int, folder: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False
