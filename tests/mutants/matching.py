"""Find a text in Python source by its words: white space, line breaks and the breaks of a string do not count."""

from __future__ import annotations

import functools
import io
import re
import token
import tokenize
from itertools import accumulate, pairwise

Span = tuple[int, int]

# Three quotes count as one word, since one quote becomes three when a string no longer fits on a line.
WORD = re.compile(r'"""|\w+|\S')

OPENING = re.compile(r"""[a-zA-Z]*('{3}|"{3}|'|")""")

# From 3.12 on, an f-string is many tokens.  Its two ends are what matters here.
BEGINS = {token.STRING, getattr(token, "FSTRING_START", token.STRING)}
ENDS = {token.STRING, getattr(token, "FSTRING_END", token.STRING)}


def words(source: str) -> list[str]:
    """The words of Python source, as `spans_of` compares them."""
    return [word for word, _ in placed_words(source)]


def spans_of(wanted: str, source: str) -> list[Span]:
    """Where these words stand one after another in Python source."""
    looked_for = [word for word, _ in _words(wanted, [])]
    placed = placed_words(source)
    texts = [word for word, _ in placed]
    count = len(looked_for)
    return [
        (placed[first][1][0], placed[first + count - 1][1][1])
        for first in range(len(texts) - count + 1)
        if texts[first : first + count] == looked_for
    ]


def string_breaks(source: str) -> list[Span]:
    """Where a string ends only to go on as the next one, with the quotes of both."""
    breaks = []
    for (start, end), (next_start, next_end) in pairwise(string_literals(source)):
        if not re.sub(r"#.*", "", source[end:next_start]).strip():
            quotes = len(opening_of(source[start:end])[1])
            breaks.append((end - quotes, next_start + len(opening_of(source[next_start:next_end])[0])))
    return breaks


def opening_of(literal: str) -> tuple[str, str]:
    """What a string begins with, as in f\"\"\", and the quotes of it."""
    opening = OPENING.match(literal)
    assert opening
    return opening[0], opening[1]


@functools.lru_cache(maxsize=32)
def string_literals(source: str) -> list[Span]:
    """Every string outside of other strings."""
    found = []
    lines = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    depth = start = 0
    for item in tokenize.generate_tokens(io.StringIO(source).readline):
        if item.type in BEGINS:
            start = start if depth else lines[item.start[0] - 1] + item.start[1]
            depth += 1
        if item.type in ENDS:
            depth -= 1
            if not depth:
                found.append((start, lines[item.end[0] - 1] + item.end[1]))
    return found


@functools.lru_cache(maxsize=32)
def placed_words(source: str) -> list[tuple[str, Span]]:
    """Each word of Python source with its place; many mutants are looked for in one file."""
    return _words(source, string_breaks(source))


def _words(source: str, breaks: list[Span]) -> list[tuple[str, Span]]:
    """Each word with its place; of the quotes where a string breaks nothing is left."""
    for start, end in breaks:
        source = source[:start] + " " * (end - start) + source[end:]
    return [('"' if match[0] == '"""' else match[0], match.span()) for match in WORD.finditer(source)]
