"""docs/effects.md: each line names an existing test, and each kind of effect is mentioned."""

from __future__ import annotations

import re

from rowcall.effects import KINDS
from tests.support.processes import ROOT

PAGE = (ROOT / "docs" / "effects.md").read_text()
NAMED = re.findall(r"`(tests/[a-z_/]+\.py)::(test_[a-z_]+)`", PAGE)


def test_every_test_that_the_page_names_is_there() -> None:
    assert len(NAMED) > 10
    missing = [f"{file}::{name}" for file, name in NAMED if f"def {name}(" not in (ROOT / file).read_text()]
    assert missing == []


def test_every_test_of_a_gap_is_on_the_page() -> None:
    gaps = (ROOT / "tests" / "example" / "test_gaps.py").read_text()
    of_operators = re.compile("test_an_operator_")
    written = [name for name in re.findall(r"def (test_[a-z_]+)\(", gaps) if not of_operators.match(name)]
    assert set(written) <= {name for _, name in NAMED}


def test_every_kind_is_told_of_with_its_key_and_policy() -> None:
    for kind in KINDS.values():
        assert f"| `{kind.name}` | {', '.join(f'`{name}`' for name in kind.table.key)} |" in PAGE
