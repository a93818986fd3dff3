"""Encodes values for jsonb columns; before a statement is sent, refuses what PostgreSQL would refuse."""

from __future__ import annotations

import json
import re
from typing import Any

# An escaped null character; after an even number of backslashes, u0000 is plain text.
NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

# A string, which is skipped, or a number with an exponent as Python writes it: one digit and a fraction.
EXPONENTS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[0-9](?:\.([0-9]++))?e([+-][0-9]++)')

# Created once, because json.dumps creates one for every value.
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def stored(value: Any) -> str:
    """Encode the value for jsonb; the ValueError says what cannot be stored."""
    try:
        text = ENCODER.encode(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it contains half of a surrogate pair, which is not a character") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if "\\u0000" in text and NULL.search(text):
        raise ValueError("it contains a null character, which PostgreSQL cannot store")
    return text


def size_of(text: str) -> int:
    """Return the size in bytes of jsonb's output for text from `stored`: jsonb writes numbers without exponents."""
    size = len(text.encode())
    if "e+" in text or "e-" in text:
        size += sum(_written(number) - len(number[0]) for number in EXPONENTS.finditer(text) if number[2])
    return size


def _written(number: re.Match[str]) -> int:
    """Return how many characters the number has when it is written without an exponent.

    Python uses an exponent from 1e16 up, where numbers have no fraction, and below 1e-4, where they begin with "0.".
    """
    exponent = int(number[2])
    return exponent + 1 if exponent > 0 else 2 + len(number[1] or "") - exponent


# A result or saved state should only identify the work; larger data belongs in the app's own tables or files.
KEPT_BYTES = 64 * 1024


def stored_small(value: Any) -> str:
    """Encode what a handler returns or saves; if it is too large, the ValueError says what to do."""
    text = stored(value)
    size = size_of(text)
    if size > KEPT_BYTES:
        raise ValueError(
            f"it is {size} bytes as PostgreSQL writes it; the limit is {KEPT_BYTES}:"
            " store it in a table or file of your own and return its id"
        )
    return text
