"""A page of docs/, and a reader who types its commands in a folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from psycopg2.extensions import parse_dsn

from rowcall.local_postgres.programs import find_programs
from tests.support.processes import LIMIT_SECONDS, ROOT


def blocks(page: str, language: str) -> list[str]:
    """The page's blocks in this language, in order; those within a list without its indent."""
    text = (ROOT / "docs" / page).read_text()
    found: list[tuple[str, str]] = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.M | re.S)
    return [re.sub(f"^{indent}", "", block, flags=re.M) for indent, block in found]


class Reader:
    """A shell in a folder, with the programs of this environment and PostgreSQL's, and perhaps a database."""

    def __init__(self, folder: Path, url: str | None = None, **variables: str) -> None:
        self.folder = folder
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("ROWCALL_", "PYTHON", "PG"))}
        path = os.pathsep.join((str(Path(sys.executable).parent), str(find_programs().folder), os.environ["PATH"]))
        self.environment = {**bare, "PATH": path, "HOME": str(folder), **_database(url), **variables}

    def type(self, commands: str, code: int = 0) -> str:
        """Type these commands, up to the first that fails; return what they print."""
        done = subprocess.run(
            ["/bin/sh", "-euc", commands],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


def _database(url: str | None) -> dict[str, str]:
    """The variables with which Rowcall and PostgreSQL's own programs find this database."""
    if url is None:
        return {}
    parsed = parse_dsn(url)
    libpq = {f"PG{name.upper()}": parsed[name] for name in ("host", "port", "user", "password") if name in parsed}
    return {"DATABASE_URL": url, **libpq}
