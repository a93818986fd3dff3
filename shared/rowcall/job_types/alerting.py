"""The job type that tells receivers of incidents, and what it sends to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, fields, validate

from rowcall.base.receivers import Receiver, unique
from rowcall.base.settings import Settings
from rowcall.job_types.backoff import exponential
from rowcall.job_types.declaration import JobType


class SendAlert(Schema):
    """The incidents that began and that ended, and the label of the receiver."""

    to = fields.String(required=True, validate=validate.Length(1, 400))
    opened = fields.List(fields.Integer(strict=True, validate=validate.Range(1)), load_default=list)
    ended = fields.List(fields.Integer(strict=True, validate=validate.Range(1)), load_default=list)


# Tried for about a day, because a mail server may be away as long as what the alert is about.
SEND_ALERT = JobType(
    "send_alert",
    schema=SendAlert,
    scope="admin",
    queue="maintenance",
    max_attempts=100,
    backoff=exponential(base=15, cap=900),
)


@dataclass(frozen=True)
class Message:
    """One message, for people, and the same as JSON."""

    subject: str
    text: str
    incidents: Sequence[Mapping[str, Any]]


def receivers_by_label(settings: Settings, types: Mapping[str, JobType]) -> Mapping[str, Receiver]:
    """Return everyone whom this process may tell, by label."""
    of_types = [receiver for job_type in types.values() for receiver in job_type.on_dead_receivers]
    return {receiver.label: receiver for receiver in unique([*settings.alert_receivers, *of_types])}
