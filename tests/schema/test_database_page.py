"""docs/database.md: its commands work, and its lists are complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall.local_postgres.programs import find_programs
from rowcall.schema.revision import VERSION_TABLE
from rowcall.schema.tables import metadata
from rowcall_migrations.grants import ROLES
from tests.schema.catalogue import asked
from tests.support.processes import LIMIT_SECONDS, ROOT

PAGE = (ROOT / "docs" / "database.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def carried_out(block: str, url: str, folder: Path, environment: dict[str, str]) -> None:
    """Run a block as a person would paste it, with this Python and a psql on the PATH."""
    path = os.pathsep.join((str(Path(sys.executable).parent), str(find_programs().folder), os.defpath))
    done = subprocess.run(
        ["/bin/sh", "-euc", block],
        env={**environment, "DATABASE_URL": url, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", [block for block in BLOCKS if "--grants" not in block])
def test_the_commands_work_in_an_empty_database(
    block: str, empty_url: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    carried_out(block, empty_url, tmp_path, environment)


def test_the_roles_are_made_as_the_page_says(fresh_url: str, tmp_path: Path, environment: dict[str, str]) -> None:
    [block] = [block for block in BLOCKS if "--grants" in block]
    names = [f"rowcall_{duty}" for duty in ROLES]
    carried_out(block, fresh_url, tmp_path, environment)
    try:
        found = asked(
            fresh_url, "SELECT rolname, rolcanlogin FROM pg_roles WHERE rolname = ANY(%(names)s)", names=names
        )
        assert {row["rolname"]: row["rolcanlogin"] for row in found} == dict.fromkeys(names, False)
    finally:
        asked(fresh_url, f"DROP OWNED BY {', '.join(names)}; DROP ROLE {', '.join(names)}")
    assert re.findall(r"^\| `(\w+)` \| ", PAGE, re.MULTILINE)[-3:] == names


def test_the_page_names_every_table() -> None:
    listed = PAGE.split("## Tables")[1].split("##")[0]
    names = {name for row in re.findall(r"^\| (`.*?) \|", listed, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert names == {table.name for table in metadata.tables.values()} | {VERSION_TABLE}
