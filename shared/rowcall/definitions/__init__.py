"""Definitions: named schedules of runs, and the tick that enqueues the runs.

Functions take the caller's connection first, run in its transaction, and never commit.  The exception is `tick`, which
opens one transaction for each definition.
"""

from rowcall.definitions.apply import Difference, apply_code, apply_file, lines
from rowcall.definitions.broken import Resting
from rowcall.definitions.check import ContentSchema, as_sent, checked, in_words
from rowcall.definitions.content import Content
from rowcall.definitions.fields import Duration
from rowcall.definitions.idle import visit_idle
from rowcall.definitions.lists import definitions_page, next_due, occurrences_of
from rowcall.definitions.occurrences import problem_of
from rowcall.definitions.run_now import run_now
from rowcall.definitions.store import (
    Change,
    Put,
    get_definition,
    list_definitions,
    pause,
    put,
    remove,
    resume,
)
from rowcall.definitions.tick import Ticked, clock, last_tick, overdue, tick, undecided
from rowcall.definitions.version import Precondition, version_of

__all__ = [
    "Change",
    "Content",
    "ContentSchema",
    "Difference",
    "Duration",
    "Precondition",
    "Put",
    "Resting",
    "Ticked",
    "apply_code",
    "apply_file",
    "as_sent",
    "checked",
    "clock",
    "definitions_page",
    "get_definition",
    "in_words",
    "last_tick",
    "lines",
    "list_definitions",
    "next_due",
    "occurrences_of",
    "overdue",
    "pause",
    "problem_of",
    "put",
    "remove",
    "resume",
    "run_now",
    "tick",
    "undecided",
    "version_of",
    "visit_idle",
]
