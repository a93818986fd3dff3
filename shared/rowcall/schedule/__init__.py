"""Schedules, computed from given instants, without a database or a clock.

`Times` are the nominal times of a schedule, `decide` is what a tick does with those that have passed, and `rendered` is
the payload for one of them.  `moment` and `duration` parse times and durations as people write them.  Invalid input
raises ScheduleInvalid.
"""

from rowcall.base.durations import duration_words
from rowcall.schedule.decide import CatchUp, Decided, Decision, Outcome, Overlap, Rule, asleep, decide
from rowcall.schedule.expression import Expression, parse
from rowcall.schedule.moments import duration, moment
from rowcall.schedule.payload import names_time, rendered
from rowcall.schedule.times import Times
from rowcall.schedule.words import schedule_words
from rowcall.schedule.zones import zone_named

__all__ = [
    "CatchUp",
    "Decided",
    "Decision",
    "Expression",
    "Outcome",
    "Overlap",
    "Rule",
    "Times",
    "asleep",
    "decide",
    "duration",
    "duration_words",
    "moment",
    "names_time",
    "parse",
    "rendered",
    "schedule_words",
    "zone_named",
]
