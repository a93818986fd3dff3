"""The jobs of this app: their payloads, natural keys, limits and retry rules.

The API, the command line and the worker import this module, so it contains only declarations; `handlers` does the work.
Days and weeks are dates in a payload; the queries choose the time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from rowcall import JobType, exponential, fixed

WEEK_DAYS = 7

# The largest bigint: no row has a larger id.
LARGEST_ID = 2**63 - 1

# A run's key has at most 255 characters, and an event's key is this prefix and the event's id.
WEBHOOK = "webhook:"
EVENT_ID_CHARACTERS = 255 - len(WEBHOOK)

# An outage of a mail server, a shop or a bank often lasts minutes; the last attempts come hours later.
PATIENT = exponential(base=10, cap=3600)

# The years 2000 to 9998, for the description of the payload.
YEARS = "^([2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-"


def _id() -> fields.Integer:
    return fields.Integer(required=True, strict=True, validate=validate.Range(1, LARGEST_ID))


def _day(**options: Any) -> fields.Date:
    return fields.Date(required=True, validate=_check_years, metadata={"pattern": YEARS}, **options)


def _check_years(day: date) -> None:
    """Require a day that has a day before and after it in every zone."""
    if not 2000 <= day.year <= 9998:
        raise ValidationError("must be a date in the years 2000 to 9998")


class DateRange(Schema):
    """From one day to another, both included."""

    first = _day(data_key="from")
    last = _day(data_key="to")

    @validates_schema
    def check_week(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require seven days, starting on any weekday."""
        if data["last"] - data["first"] != timedelta(days=WEEK_DAYS - 1):
            raise ValidationError("must be a week: `to` is six days after `from`, and both are included", "to")


class WeeklyReport(Schema):
    """A user and a week."""

    user_id = _id()
    date_range = fields.Nested(DateRange, required=True)


class Day(Schema):
    """A day."""

    day = _day()


class SalesDate(Schema):
    """The day of the sales."""

    date = _day()


class Invoice(Schema):
    """An invoice."""

    invoice_id = _id()


class InvoiceMail(Invoice):
    """An invoice, and the kind of the reminder."""

    kind = fields.String(required=True, validate=validate.OneOf(("upcoming", "due", "overdue")))


class CacheName(Schema):
    """A cache entry."""

    name = fields.String(required=True, validate=validate.Length(1, 200))


class Event(Schema):
    """An event, and the URL to deliver it to."""

    event_id = fields.String(
        required=True,
        validate=validate.Regexp(
            rf"[A-Za-z0-9_:@/+=-]{{1,{EVENT_ID_CHARACTERS}}}\Z",
            error=f"must be 1 to {EVENT_ID_CHARACTERS} of the characters A-Z a-z 0-9 _ : @ / + = -; the run's key"
            f" is `{WEBHOOK}` and this id, and has at most 255 characters",
        ),
    )
    url = fields.String(required=True, validate=validate.Length(1, 2000))
    body = fields.Dict(keys=fields.String(), required=True)


SEND_WEEKLY_REPORT = JobType(
    "send_weekly_report",
    schema=WeeklyReport,
    key=lambda payload: f"weekly_report:{payload['user_id']}:{payload['date_range']['from']}",
    queue="mail",
    time_limit=300,
    backoff=PATIENT,
)

CLEANUP_NIGHTLY = JobType(
    "cleanup_nightly",
    schema=Day,
    key=lambda payload: f"cleanup:{payload['day']}",
    queue="maintenance",
    backoff=fixed(60),
)

SEND_INVOICE_REMINDERS = JobType(
    "send_invoice_reminders",
    schema=Day,
    key=lambda payload: f"invoice_reminders:{payload['day']}",
    time_limit=300,
)

SEND_INVOICE_EMAIL = JobType(
    "send_invoice_email",
    schema=InvoiceMail,
    key=lambda payload: f"invoice_email:{payload['invoice_id']}:{payload['kind']}",
    queue="mail",
    time_limit=300,
    backoff=PATIENT,
)

CHARGE_INVOICE = JobType(
    "charge_invoice",
    schema=Invoice,
    key=lambda payload: f"invoice_charge:{payload['invoice_id']}",
    queue="payments",
    time_limit=300,
    backoff=PATIENT,
)

BUILD_SALES_REPORT = JobType(
    "build_sales_report",
    schema=SalesDate,
    key=lambda payload: f"sales_report:{payload['date']}",
    queue="reports",
    time_limit=600,
)

# Without a key, because each request should compute the value again.
REFRESH_CACHE = JobType("refresh_cache", schema=CacheName, time_limit=120, max_attempts=3)

DELIVER_WEBHOOK = JobType(
    "deliver_webhook",
    schema=Event,
    key=lambda payload: f"{WEBHOOK}{payload['event_id']}",
    queue="webhooks",
    max_attempts=15,
    time_limit=120,
    backoff=PATIENT,
)
