"""docs/security.md: each line names the test that proves it."""

from __future__ import annotations

import re

import pytest

from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
THREATS = PAGE.partition("## Threats")[2].partition("## What you must do")[0]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_test_that_the_page_names_is_there(file: str, name: str) -> None:
    assert f"def {name}" in (ROOT / file).read_text()


def test_every_threat_names_one() -> None:
    rows = [row for row in THREATS.splitlines() if row.startswith("| ")][1:]
    assert rows
    assert [row for row in rows if "`tests/" not in row] == []
