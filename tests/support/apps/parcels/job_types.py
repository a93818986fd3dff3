"""The parcels' job types: one is handed over, and the other shows that the worker performs its own runs."""

from marshmallow import Schema, fields

from rowcall import EffectKind, JobType, celery, fixed


class Parcel(Schema):
    """A parcel, how its run ends, the folder of the labels, and that of the doors at which the handler waits."""

    order_id = fields.Integer(required=True)
    ends = fields.String(load_default="well")
    folder = fields.String(load_default="")
    doors = fields.String(load_default="")


SEND = JobType(
    "parcel_send",
    schema=Parcel,
    queue="parcels",
    max_attempts=3,
    time_limit=60,
    backoff=fixed(0, jitter=False),
    handover=celery("parcels.tasks.send", queue="parcels"),
)

LIMITED = JobType(
    "parcel_limited",
    schema=Parcel,
    queue="parcels",
    time_limit=0.5,
    backoff=fixed(3600, jitter=False),
    handover=celery("parcels.tasks.send", queue="parcels"),
)

WEIGH = JobType("parcel_weigh", schema=Parcel)

LABEL = EffectKind("label", policy="at_most_once")
