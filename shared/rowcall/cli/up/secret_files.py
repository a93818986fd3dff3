"""Files that only their owner can read."""

from __future__ import annotations

import os
from pathlib import Path

from rowcall.local_postgres.home import make_home


def read_private(file: Path) -> str:
    """Return the file's text, or "" if there is no file."""
    return file.read_text().strip() if file.exists() else ""


def write_private(file: Path, text: str) -> None:
    """Write a file in ROWCALL_HOME so that nobody else can read it at any time."""
    make_home(file.parent)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(text + "\n")
