"""What exists."""

from marshmallow import Schema, fields

from rowcall import JobType


class Shipment(Schema):
    """Which order is to be shipped."""

    order_id = fields.Integer(required=True)


SHIP = JobType("team_ship", schema=Shipment, key=lambda payload: f"ship:{payload['order_id']}")
