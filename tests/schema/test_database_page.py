"""docs/database.md: its commands work, and its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowcall.schema.revision import VERSION_TABLE
from rowcall.schema.tables import metadata
from rowcall_migrations.grants import ROLES
from tests.schema.catalogue import asked
from tests.support.page import Reader, blocks
from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "database.md").read_text()
BLOCKS = blocks("database.md", "sh")


@pytest.mark.parametrize("block", [block for block in BLOCKS if "--grants" not in block])
def test_the_commands_work_in_an_empty_database(block: str, empty_url: str, tmp_path: Path) -> None:
    Reader(tmp_path, empty_url).type(block)


def test_the_roles_are_made_as_the_page_says(fresh_url: str, tmp_path: Path) -> None:
    [block] = [block for block in BLOCKS if "--grants" in block]
    names = [f"rowcall_{duty}" for duty in ROLES]
    Reader(tmp_path, fresh_url).type(block)
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
