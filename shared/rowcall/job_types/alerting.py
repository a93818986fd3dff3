"""The job types that tell receivers of incidents and services of runs, and what is sent to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from marshmallow import Schema, fields, validate

from rowcall.base.receivers import Receiver, unique
from rowcall.base.settings import Settings
from rowcall.job_types.backoff import exponential
from rowcall.job_types.declaration import JobType

NO_RECEIVERS = "no receiver of alerts is set here; workers may have some (ROWCALL_ALERT_EMAILS, ROWCALL_ALERT_WEBHOOKS)"


class SendIncidents(Schema):
    """The incidents that began and that ended, and the label of the receiver."""

    to = fields.String(required=True, validate=validate.Length(1, 400))
    opened = fields.List(fields.Integer(strict=True, validate=validate.Range(1)), load_default=list)
    ended = fields.List(fields.Integer(strict=True, validate=validate.Range(1)), load_default=list)


# Tried for about a day, because the mail server may be down for as long as the problem lasts.
SEND_INCIDENTS = JobType(
    "send_incidents",
    schema=SendIncidents,
    scope="admin",
    queue="maintenance",
    max_attempts=100,
    backoff=exponential(base=15, cap=900),
)


class PingEvent(StrEnum):
    """What a ping reports: that Rowcall works, or that a definition's run has begun or ended."""

    ALIVE = "alive"
    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


class CallPingUrl(Schema):
    """The event; for a run also the run and its definition."""

    event = fields.String(required=True, validate=validate.OneOf([*PingEvent]))
    definition_id = fields.Integer(strict=True, load_default=None, allow_none=True)
    run_id = fields.Integer(strict=True, load_default=None, allow_none=True)


def _call_key(payload: Mapping[str, Any]) -> str:
    return f"{payload['event']}:{payload['definition_id']}:{payload['run_id']}"


# The last attempt ends without an error, because a service that gets no ping raises the alarm itself.
CALL_PING_URL = JobType(
    "call_ping_url",
    schema=CallPingUrl,
    key=_call_key,
    unique="live",
    scope="admin",
    queue="maintenance",
    max_attempts=5,
    time_limit=60,
    backoff=exponential(base=5, cap=60),
)


@dataclass(frozen=True)
class Message:
    """One message, for people, and the same as JSON."""

    subject: str
    text: str
    incidents: Sequence[Mapping[str, Any]]


def receivers_by_label(settings: Settings, types: Mapping[str, JobType]) -> Mapping[str, Receiver]:
    """Return all receivers that this process may notify, by label."""
    of_types = [receiver for job_type in types.values() for receiver in job_type.on_dead_receivers]
    return {receiver.label: receiver for receiver in unique([*settings.alert_receivers, *of_types])}
