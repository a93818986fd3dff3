"""The list of mutants matches the code, and covers every statement that changes a run."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

import pytest
from click.testing import CliRunner

from tests.mutants.__main__ import main
from tests.mutants.listed import MUTANTS
from tests.mutants.mutant import QUEUE, ROOT, Mutant, names_of

CHANGES_A_RUN = re.compile(r"(UPDATE rowcall\.job_runs|(INSERT INTO|DELETE FROM) rowcall\.job_(runs|attempts))\b")

# The owner's guard in a statement, and what must be beside it: the fence is run, lease number and owner.
OWNER = "locked_by = %(worker)s"
FENCE = re.compile(r"AND (run\.)?" + re.escape(OWNER))
LEASE = ("lease_no = %(lease_no)s", "{LEASE_KEY}")


def statements(such: re.Pattern[str] = CHANGES_A_RUN) -> dict[tuple[str, str], str]:
    """Return the constants and functions of rowcall.queue whose own text changes a run, with that text on one line."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted((ROOT / QUEUE).rglob("*.py")):
        text = path.read_text()
        for node in ast.parse(text).body:
            source = on_one_line(ast.get_source_segment(text, node) or "")
            if such.search(source):
                found |= {(path.relative_to(ROOT / QUEUE).as_posix(), name): source for name in names_of(node)}
    return found


def on_one_line(text: str) -> str:
    """Return the text without its layout."""
    return re.sub(r"\s+", " ", text)


def by_place() -> dict[tuple[str, str], list[Mutant]]:
    """Return the mutants of each statement."""
    places = defaultdict(list)
    for mutant in MUTANTS:
        places[mutant.file.removeprefix(QUEUE), mutant.place].append(mutant)
    return places


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_stands_in_the_code_once_and_the_change_is_python(mutant: Mutant) -> None:
    changed = mutant.applied()
    assert changed != (ROOT / mutant.file).read_text()
    ast.parse(changed)


def test_asking_for_mutants_that_there_are_not_tells_where_there_are_some() -> None:
    refused = CliRunner().invoke(main, ["--only", "lane.py"])
    assert refused.exit_code == 2
    assert (
        "no mutant has 'lane.py' in its name, file or place; mutants exist for: claims/claim.py claim_sql"
        in refused.output
    )


def test_no_two_mutants_have_one_name() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))


def test_every_statement_that_changes_a_run_has_mutants() -> None:
    assert set(statements()) <= set(by_place())


def test_every_part_of_every_owners_fence_has_a_mutant() -> None:
    places = by_place()
    # LOCK_OWNED only waits; WRITE_LOG, which follows it, has the fence.
    fenced = {place: text for place, text in statements(FENCE).items() if place != ("run_log.py", "LOCK_OWNED")}
    assert len(fenced) == 11, (
        "OWN, HELD twice, SAVE, WRITE_LOG, SUCCEED, and five statements that end an attempt without success"
    )
    for place, text in fenced.items():
        taken = [on_one_line(mutant.stands) for mutant in places[place]]
        parts = [part for part in ("id = %(run_id)s", *LEASE, OWNER) if part in text]
        assert all(any(part in stands for stands in taken) for part in parts), place
