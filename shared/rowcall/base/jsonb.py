"""JSON on its way into a jsonb column: what PostgreSQL would refuse is refused here, before a statement is tried."""

from __future__ import annotations

import json
import re
from typing import Any

# An escaped null character; an even number of backslashes before the u would be backslashes and the plain word u0000.
NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

# A string, whose characters do not count, or a number with an exponent, as Python writes it: one digit and a fraction.
EXPONENTS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[0-9](?:\.([0-9]++))?e([+-][0-9]++)')

# Made once: json.dumps would make one for every value.
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def stored(value: Any) -> str:
    """The value as text for jsonb; ValueError says what in it cannot be stored."""
    try:
        text = ENCODER.encode(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is not a character") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if NULL.search(text):
        raise ValueError("it holds a null character, which PostgreSQL cannot store")
    return text


def size_of(text: str) -> int:
    """How many bytes jsonb writes for this text of `stored`: numbers have all their digits there, and no exponents."""
    size = len(text.encode())
    if "e+" in text or "e-" in text:
        size += sum(_written(number) - len(number[0]) for number in EXPONENTS.finditer(text) if number[2])
    return size


def _written(number: re.Match[str]) -> int:
    """How many characters a number has without its exponent.

    Python uses an exponent for numbers from 1e16 up, which have no fraction, and below 1e-4, which begin with "0.".
    """
    exponent = int(number[2])
    return exponent + 1 if exponent > 0 else 2 + len(number[1] or "") - exponent


# What is kept of a run's work names it; what is larger belongs in a table or file of the app's own.
KEPT_BYTES = 64 * 1024


def stored_small(value: Any) -> str:
    """The same for what a handler returns or saves: ValueError says what to do where it is too large."""
    text = stored(value)
    size = size_of(text)
    if size > KEPT_BYTES:
        raise ValueError(
            f"it is {size} bytes as PostgreSQL stores it; the limit is {KEPT_BYTES}:"
            " store it in a table or file of your own and return its id"
        )
    return text
