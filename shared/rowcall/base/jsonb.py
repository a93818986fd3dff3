"""JSON on its way into a jsonb column: what PostgreSQL would refuse is refused here, before a statement is tried."""

from __future__ import annotations

import json
import re
from typing import Any

# An escaped null character; an even number of backslashes before the u would be backslashes and the plain word u0000.
NULL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

# Made once: json.dumps would make one for every value.
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def stored(value: Any) -> str:
    """The value as text for jsonb; ValueError says what in it cannot be stored."""
    try:
        text = ENCODER.encode(value)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no character") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if NULL.search(text):
        raise ValueError("it holds a null character, which PostgreSQL cannot store")
    return text


# What is kept of a run's work names it; what is larger belongs in a table or file of the app's own.
KEPT_BYTES = 64 * 1024


def stored_small(value: Any) -> str:
    """The same for what a handler returns or saves: ValueError says what to do where it is too large."""
    text = stored(value)
    size = len(text.encode())
    if size > KEPT_BYTES:
        raise ValueError(
            f"it is {size} bytes; the limit is {KEPT_BYTES}: store it in a table or file of your own and return its id"
        )
    return text
