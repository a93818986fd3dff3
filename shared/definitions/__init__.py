"""Definitions: what should exist, and the tick that makes it so.

Functions take the caller's connection first, run in its transaction, and never commit; only `tick` opens transactions
of its own, one for each definition.
"""

from shared.definitions.apply import Difference, apply_code, apply_file, lines
from shared.definitions.content import Content, checked, in_words, told
from shared.definitions.content_schema import ContentSchema, Duration
from shared.definitions.store import (
    Change,
    Put,
    get_definition,
    list_definitions,
    occurrences_of,
    pause,
    put,
    remove,
    resume,
    run_now,
)
from shared.definitions.tick import Ticked, clock, last_tick, tick, undecided

__all__ = [
    "Change",
    "Content",
    "ContentSchema",
    "Difference",
    "Duration",
    "Put",
    "Ticked",
    "apply_code",
    "apply_file",
    "checked",
    "clock",
    "get_definition",
    "in_words",
    "last_tick",
    "lines",
    "list_definitions",
    "occurrences_of",
    "pause",
    "put",
    "remove",
    "resume",
    "run_now",
    "tick",
    "told",
    "undecided",
]
