"""Which test caught each mutant the last time: it is run alone first, because all tests together take minutes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.mutants.listed import MUTANTS
from tests.mutants.mutant import Mutant

FILE = Path(__file__).with_name("caught_by.json")


def key_of(mutant: Mutant) -> str:
    """Return what identifies a mutant."""
    return f"{mutant.file} {mutant.place}: {mutant.name}"


def read() -> dict[str, str]:
    """Return the test that caught each mutant."""
    remembered: dict[str, str] = json.loads(FILE.read_text())
    return remembered


def write(caught: Mapping[str, str]) -> None:
    """Store the tests that caught these mutants, except of mutants that are no longer listed."""
    listed = {key_of(mutant) for mutant in MUTANTS}
    kept = {key: test for key, test in sorted(caught.items()) if key in listed}
    FILE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
