"""Its job type, and its kind of effect."""

from __future__ import annotations

from marshmallow import Schema, fields

from rowcall import EffectKind, JobType


class Order(Schema):
    """An order."""

    order_id = fields.Integer(required=True)


TEXT = JobType("bench_text", schema=Order)
SMS = EffectKind("bench_sms", policy="at_most_once")
