"""The filters of runs in a screen's address: as typed, as checked, and with exact times in place of words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import flask

from rowcall.base.errors import FilterInvalid, ScheduleInvalid
from rowcall.queue import Filter
from rowcall.queue.views.filters import Form
from rowcall.queue.views.pages import Order
from rowcall.schedule import moment
from rowcall_api.page import forms, words
from rowcall_api.schemas.filters import RunsQuery

FILTERS = tuple(spec.name for spec in fields(Filter))
TIMES = tuple(spec.name for spec in fields(Filter) if spec.metadata["form"] is Form.TIME)

# What else the address of a list may contain.
BESIDES = ("cursor", "order")

ZONE = ZoneInfo("UTC")


@dataclass(frozen=True)
class Asked:
    """The filters of an address.

    `sent` is what was typed, for the fields of a form.  `fixed` has times in place of words such as "1h ago", for
    links, which must mean the same runs later.
    """

    sent: dict[str, Any]
    fixed: dict[str, Any] = field(default_factory=dict)
    criteria: Filter = field(default_factory=Filter)
    cursor: str | None = None
    order: Order = Order.DESC
    wrong: Mapping[str, str] = field(default_factory=dict)

    @property
    def filtered(self) -> bool:
        """Whether the address has any filter."""
        return any(name in FILTERS for name in self.sent)

    @property
    def query(self) -> str:
        """Return the filters as the query of an address, as they were typed: "1h ago" stays relative."""
        return urlencode({name: value for name, value in self.sent.items() if name != "cursor"}, doseq=True)


def asked() -> Asked:
    """Return the filters of this request's address; `wrong` says what is wrong with each."""
    sent = _sent()
    times, wrong = _times(sent)
    fixed = {name: value for name, value in {**sent, **times}.items() if name in FILTERS}
    try:
        raw = {name: value for name, value in {**sent, **times}.items() if name not in wrong}
        query, refused = forms.loaded(RunsQuery(), raw)
        wrong |= refused
        criteria = Filter(**{name: query[name] for name in FILTERS if name in query})
    except FilterInvalid as error:
        wrong |= {name: forms.in_a_sentence(why) for name, why in error.fields.items()}
    if wrong:
        return Asked(sent, fixed, wrong=wrong)
    return Asked(sent, fixed, criteria, query["cursor"], query["order"])


def time_in_words(text: str, past: bool = False) -> datetime:
    """Return the time that an operator means, in UTC unless it has an offset; raise ScheduleInvalid."""
    return moment(text, words.now(), ZONE, past)


def _sent() -> dict[str, Any]:
    """Return the filters without the empty fields of a form."""
    args = flask.request.args
    sent: dict[str, Any] = {
        name: value.strip() for name in (*FILTERS, *BESIDES) if (value := args.get(name, "")).strip()
    }
    statuses = [status.strip() for text in args.getlist("status") for status in text.split(",") if status.strip()]
    return {**sent, "status": statuses} if statuses else sent


def _times(sent: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the valid times in the form of the API's query, and what is wrong with the others."""
    times, wrong = {}, {}
    for name in sent.keys() & {*TIMES}:
        try:
            # Runs were created and have finished in the past; they may be due in the future.
            times[name] = time_in_words(sent[name], past=not name.startswith("run_")).isoformat()
        except ScheduleInvalid as error:
            wrong[name] = str(error)
    return times, wrong
