"""Files that are for their owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def read_private(file: Path) -> str:
    """What stands in it; nothing where it is not there."""
    return file.read_text().strip() if file.exists() else ""


def write_private(file: Path, text: str) -> None:
    """Write it anew; nobody else could read it at any moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(text + "\n")
