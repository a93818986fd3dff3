"""A mutant is found in a statement by its words, in any layout."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.mutants.listed import MUTANTS
from tests.mutants.matching import opening_of, spans_of, string_literals, words
from tests.mutants.mutant import ROOT, Mutant, lines_of

FILES = [file for file in sorted({mutant.file for mutant in MUTANTS}) if "rowcall.job_" in (ROOT / file).read_text()]

Layout = Callable[[str], str]


def on_one_line(literal: str) -> str:
    """Return the string with a single space in place of each white space."""
    return re.sub(r"\s+", " ", literal)


def spread(literal: str) -> str:
    """Return the string with more white space: each word on its own line, where a line break is possible."""
    return with_spaces_as("\n            " if opening_of(literal)[1] == '"""' else "   ", literal)


def in_pieces(literal: str) -> str:
    """Return the string as many strings, one for each word."""
    opening, quotes = opening_of(literal)
    return with_spaces_as(f" {quotes} {opening}", literal)


def with_spaces_as(between: str, literal: str) -> str:
    """Return the string with this in place of each white space of its text, that is, outside of braces."""
    depth, parts = 0, []
    for character in on_one_line(literal):
        depth += (character == "{") - (character == "}")
        parts.append(between if character == " " and not depth else character)
    return "".join(parts)


def relaid(source: str, layout: Layout) -> str:
    """Return the source with every string in this layout, including docstrings."""
    end, parts = 0, []
    for start, stop in string_literals(source):
        parts += [source[end:start], layout(source[start:stop])]
        end = stop
    return "".join(parts) + source[end:]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("layout", [on_one_line, spread, in_pieces])
def test_a_mutant_applies_in_the_same_way_however_its_statement_is_laid_out(file: str, layout: Layout) -> None:
    source = (ROOT / file).read_text()
    other = relaid(source, layout)
    assert other != source
    assert words(other) == words(source)
    for mutant in (mutant for mutant in MUTANTS if mutant.file == file):
        here, there, before = (
            words(scope_of(text, mutant.place))
            for text in (mutant.applied_to(source), mutant.applied_to(other), source)
        )
        assert here == there != before, mutant.name


def scope_of(text: str, place: str) -> str:
    """Return the text of a module's constant or function, in a file that Python can read."""
    first, last = lines_of(text, place)
    return "".join(text.splitlines(keepends=True)[first:last])


def test_what_is_replaced_may_reach_from_one_string_into_the_next() -> None:
    mutant = Mutant("", "", "SQL", "b = 1 AND c = 2", "true")
    broken = 'SQL = (\n    "WHERE a AND b = 1"  # why\n    f" AND c = 2 AND {d}"\n)\n'
    changed = mutant.applied_to(broken)
    assert eval(changed.removeprefix("SQL = "), {"d": "e"}) == "WHERE a AND true AND e"  # noqa: S307 - our own text


def test_strings_that_are_arguments_of_their_own_are_not_one_text() -> None:
    assert not spans_of("b c", 'f("a b", "c d")')
    assert spans_of("b c", 'f("a b" "c d")')


def test_a_part_of_a_word_is_not_found() -> None:
    assert not spans_of("run_at", "SQL = 'next_run_at'")


@pytest.mark.parametrize(("text", "count"), [("SQL = 'a'", 0), ("SQL = 'b = 1 AND\\\n  b=1'", 2)])
def test_what_stands_nowhere_or_twice_is_refused(text: str, count: int) -> None:
    with pytest.raises(ValueError, match=f"'b = 1' occurs {count} times in SQL"):
        Mutant("", "", "SQL", "b = 1", "true").applied_to(text)
