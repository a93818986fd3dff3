"""The bakery's job types."""

from marshmallow import Schema, fields

from rowcall import Definition, EffectKind, JobType, fixed


class Loaf(Schema):
    """A loaf, and what its handler does."""

    loaf_id = fields.Integer(required=True)
    ends = fields.String(load_default="well")


class Day(Schema):
    """A day."""

    day = fields.String(required=True)


BAKE = JobType("bakery_bake", schema=Loaf, key=lambda payload: f"bake:{payload['loaf_id']}", backoff=fixed(60))
REMIND = JobType("bakery_remind", schema=Loaf, max_attempts=3, backoff=fixed(3600, jitter=False))
CHARGE = JobType("bakery_charge", schema=Loaf, max_attempts=3, backoff=fixed(60, jitter=False))
NOTIFY = JobType("bakery_notify", schema=Loaf, backoff=fixed(60, jitter=False))
PRINT = JobType("bakery_print", schema=Loaf, isolated=True, backoff=fixed(60, jitter=False))
NARROW = JobType("bakery_narrow", schema=Loaf, queue="narrow", max_running=1)
CLEAN = JobType("bakery_clean", schema=Day, key=lambda payload: f"clean:{payload['day']}")

SMS = EffectKind("sms", policy="at_most_once")

NIGHTLY = Definition("clean-nightly", CLEAN, "30 2 * * *", time_zone="UTC", payload={"day": "{date}"})
