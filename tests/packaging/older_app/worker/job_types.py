"""The team's job types."""

from marshmallow import Schema, fields

from rowcall import JobType


class Shipment(Schema):
    """The order to ship."""

    order_id = fields.Integer(required=True)


SHIP = JobType("team_ship", schema=Shipment, key=lambda payload: f"ship:{payload['order_id']}")
