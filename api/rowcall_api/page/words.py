"""How values look on a screen: times, durations, counts and JSON."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import flask

from rowcall.base.database import Row
from rowcall.base.durations import duration_words, relative
from rowcall.base.errors import ScheduleInvalid
from rowcall.queue.claims.holders import holder_words, is_unbegun
from rowcall.queue.queues import COUNTED_MOST
from rowcall.schedule import parse, schedule_words
from rowcall.status import Status

# What a status is called on a screen: a run that failed and waits for another attempt must not look like a lost one.
STATUS_WORDS = {Status.FAILED: "retrying"}


# Times as the core's sentences write them.
TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d")

# Invisible characters and those that change the direction of text, except the joiners used in words and emoji.
UNSEEN = re.compile("[\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def now() -> datetime:
    """Return the database's time if the screen has read it, otherwise this server's."""
    at: datetime = flask.g.get("at") or datetime.now(UTC)
    return at


def exact(moment: datetime) -> str:
    """Return a time in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class Html(str):
    """HTML in which all user data is already escaped, so that templates do not escape it again."""

    def __html__(self) -> str:
        """Return the text unchanged (Jinja's hook)."""
        return self


def ago(moment: datetime | None) -> str:
    """Return a time relative to now, with the exact one as its title; the page's script can show that one instead."""
    if moment is None:
        return Html('<span class="none">-</span>')
    words = relative(moment, now())
    return Html(f'<time datetime="{moment.isoformat()}" title="{exact(moment)}">{words}</time>')


def dated(text: str) -> str:
    """Return a sentence of the core with its times in UTC; the page's script can show them in the reader's zone."""
    return Html(TIMES.sub(_marked, html.escape(text)))


def _marked(found: re.Match[str]) -> str:
    try:
        moment = datetime.fromisoformat(found[0])
    except ValueError:  # an error's own text may contain something that only looks like a time
        return found[0]
    return f'<time datetime="{moment.isoformat()}">{exact(moment)}</time>'


def duration(seconds: float | timedelta | None) -> str:
    """Return a duration that a person can compare: two digits, or whole units."""
    if seconds is None:
        return "-"
    length = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if length < 1:
        return f"{length * 1000:.0f} ms"
    if length < 10:
        return f"{length:.1f} s"
    if length < 3600:
        return duration_words(timedelta(seconds=round(length)))
    return duration_words(timedelta(minutes=round(length / 60)))


def count(number: int | None) -> str:
    """Return a count; counts stop at a limit, because counting further would read all runs."""
    if number is None:
        return "-"
    return f"{number:,}+" if number >= COUNTED_MOST else f"{number:,}"


def total(number: int) -> str:
    """Return a sum of counts that have no limit."""
    return f"{number:,}"


def pretty(value: Any) -> str:
    """Return JSON for people, indented; invisible characters are escaped, which does not change its meaning."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shape(value: Any) -> Any:
    """Return the JSON with the type of each value in place of the value, for a reader who may not see values."""
    if isinstance(value, Mapping):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0]), f"{len(value)} in all"] if value else []
    names: dict[type, str] = {bool: "true or false", int: "integer", float: "number", str: "text", type(None): "null"}
    return names.get(type(value), "value")


def status_word(status: str) -> str:
    """Return the word for a status."""
    return STATUS_WORDS.get(Status(status), status)


def schedule(definition: Row) -> str:
    """Return a definition's schedule in words, with its zone; an invalid one unchanged."""
    try:
        return schedule_words(parse(definition["schedule"]), definition["time_zone"])
    except ScheduleInvalid:
        return f"{definition['schedule']}, {definition['time_zone']}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def held_as(holder: str) -> str:
    """Return the name of the fact that says who has a running run."""
    return "Handed over as" if is_unbegun(holder) else "Performed by"


def sentence(text: str) -> str:
    """Return the text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "exact": exact,
    "dated": dated,
    "duration": duration,
    "count": count,
    "total": total,
    "pretty": pretty,
    "shape": shape,
    "status": status_word,
    "plural": plural,
    "schedule": schedule,
    "holder": holder_words,
    "held_as": held_as,
    "sentence": sentence,
}
