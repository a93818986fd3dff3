"""Wording for error messages: what is wrong with a value, which status something has, and which name was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

# The time to compare names grows with their length; no known name is longer than this.
COMPARED_CHARACTERS = 100

# Indented lines, and the period before them.
HINT = re.compile(r"\.?((?:\n[ \t]+\S.*)+)")

# The statuses, of runs and of operations, that cannot follow "is".
VERBS = {"succeeded": "has succeeded", "canary": "is trying its canary"}


class Fault(str):
    """What is wrong with a value, with a code for programs."""

    code: str
    __slots__ = ("code",)

    # The default lets a fault be pickled, which restores the code afterwards.
    def __new__(cls, text: str, code: str = "invalid") -> Fault:
        """Return this text with the code."""
        fault = super().__new__(cls, text)
        fault.code = code
        return fault


def has_status(status: str) -> str:
    """Say which status something has: "is dead", but "has succeeded"."""
    return VERBS.get(status, f"is {status}")


def sentence(wrong: object) -> str:
    """Format what is wrong with a field; marshmallow nests lists and mappings, and ends each message with a period."""
    if isinstance(wrong, Mapping):
        return ", ".join(f"{name}: {sentence(inner)}" for name, inner in wrong.items())
    if isinstance(wrong, (list, tuple)):
        return "; ".join(sentence(inner) for inner in wrong)
    return str(wrong).removesuffix(".")


def one_line(text: str) -> str:
    """Join the lines of a driver's message; put libpq's hints, which are indented below an error, in parentheses."""
    told = HINT.sub(lambda hint: f" ({' '.join(hint[1].split()).rstrip('.')})", text.strip())
    return "; ".join(" ".join(line.split()).rstrip(".") for line in told.splitlines() if line.strip())


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question that proposes the nearest known name, or an empty text."""
    near = difflib.get_close_matches(name, known, n=1) if len(name) <= COMPARED_CHARACTERS else []
    return f"did you mean {near[0]!r}?" if near else ""
