"""Find text in Python source by its words, regardless of white space, line breaks and breaks of strings."""

from __future__ import annotations

import functools
import io
import re
import token
import tokenize
from itertools import accumulate, pairwise

Span = tuple[int, int]

# Three quotes are one word, because one quote becomes three when a string no longer fits on a line.
WORD = re.compile(r'"""|\w+|\S')

OPENING = re.compile(r"""[a-zA-Z]*('{3}|"{3}|'|")""")

# From Python 3.12 on, an f-string is many tokens.  Only its two ends matter here.
BEGINS = {token.STRING, getattr(token, "FSTRING_START", token.STRING)}
ENDS = {token.STRING, getattr(token, "FSTRING_END", token.STRING)}


def words(source: str) -> list[str]:
    """Return the words of Python source, as `spans_of` compares them."""
    return [word for word, _ in placed_words(source)]


def spans_of(wanted: str, source: str) -> list[Span]:
    """Return the places at which these words occur in sequence in Python source."""
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
    """Return the places at which a string ends and continues as the next one, including the quotes."""
    breaks = []
    for (start, end), (next_start, next_end) in pairwise(string_literals(source)):
        if not re.sub(r"#.*", "", source[end:next_start]).strip():
            quotes = len(opening_of(source[start:end])[1])
            breaks.append((end - quotes, next_start + len(opening_of(source[next_start:next_end])[0])))
    return breaks


def opening_of(literal: str) -> tuple[str, str]:
    """Return a string's prefix and opening quotes, as in f\"\"\", and its quotes."""
    opening = OPENING.match(literal)
    assert opening
    return opening[0], opening[1]


@functools.lru_cache(maxsize=32)
def string_literals(source: str) -> list[Span]:
    """Return the places of all strings outside of other strings."""
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
    """Return each word of Python source with its place, cached because many mutants search one file."""
    return _words(source, string_breaks(source))


def _words(source: str, breaks: list[Span]) -> list[tuple[str, Span]]:
    """Return each word with its place, without the quotes at the breaks of strings."""
    for start, end in breaks:
        source = source[:start] + " " * (end - start) + source[end:]
    return [('"' if match[0] == '"""' else match[0], match.span()) for match in WORD.finditer(source)]
