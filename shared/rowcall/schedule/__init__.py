"""Schedules, worked out from the instants that are given: no database, and no clock.

`Times` are a schedule's nominal times, `decide` is what a tick makes of those that have come, `rendered` the payload of
one of them; `moment` and `duration` read what people write.  Whatever cannot be used is a ScheduleInvalid.
"""

from rowcall.base.durations import duration_words
from rowcall.schedule.decide import CatchUp, Decided, Decision, Outcome, Overlap, Rule, asleep, decide
from rowcall.schedule.expression import Expression, parse
from rowcall.schedule.moments import duration, moment
from rowcall.schedule.payload import names_time, rendered
from rowcall.schedule.times import Times
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
    "zone_named",
]
