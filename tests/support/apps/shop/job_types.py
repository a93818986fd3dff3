"""The shop's job types."""

from marshmallow import Schema, fields

from rowcall import Definition, JobType, fixed


class Order(Schema):
    """An order, and what happens to its run."""

    order_id = fields.Integer(required=True)
    ends = fields.String(load_default="well")


class Errand(Order):
    """An order whose handler knocks and waits at a door; each lease has its own door, a file in the folder `doors`."""

    doors = fields.String(required=True)


class Shipment(Order):
    """An order, and the point of its first attempt at which the worker dies."""

    dies = fields.String(load_default="")


PACK = JobType(
    "shop_pack",
    schema=Order,
    key=lambda payload: f"pack:{payload['order_id']}",
    queue="packing",
    max_attempts=2,
    lease=30,
    backoff=fixed(0, jitter=False),
)

CLOCK = JobType("shop_clock", schema=Order)

NOTHING = JobType("shop_nothing", schema=Order)

SLOW = JobType("shop_slow", schema=Order, queue="packing", max_attempts=3, backoff=fixed(0, jitter=False))

LIMITED = JobType("shop_limited", schema=Order, time_limit=0.5, backoff=fixed(3600, jitter=False))

BOOK = JobType("shop_book", schema=Order, backoff=fixed(3600, jitter=False))

NARROW = JobType("shop_narrow", schema=Order, queue="narrow", max_running=2, backoff=fixed(0, jitter=False))

ISOLATED_PACK = JobType("shop_isolated_pack", schema=Order, isolated=True, backoff=fixed(0, jitter=False))

ISOLATED = JobType("shop_isolated", schema=Order, isolated=True, backoff=fixed(0, jitter=False))

ISOLATED_BOOK = JobType("shop_isolated_book", schema=Order, isolated=True, backoff=fixed(3600, jitter=False))

ISOLATED_LIMITED = JobType(
    "shop_isolated_limited", schema=Order, isolated=True, time_limit=0.5, backoff=fixed(3600, jitter=False)
)

ISOLATED_SHORT = JobType("shop_isolated_short", schema=Order, isolated=True, lease=2, backoff=fixed(0, jitter=False))

ISOLATED_CAPPED = JobType(
    "shop_isolated_capped", schema=Order, isolated=True, memory_cap=256, backoff=fixed(3600, jitter=False)
)

WAIT = JobType("shop_wait", schema=Errand, max_attempts=3, backoff=fixed(0, jitter=False))

STEPS = JobType("shop_steps", schema=Order)

FORKS = JobType("shop_forks", schema=Order, max_attempts=1)

ISOLATED_FORKS = JobType("shop_isolated_forks", schema=Order, max_attempts=1, isolated=True)

SHIP = JobType(
    "shop_ship",
    schema=Shipment,
    key=lambda payload: f"ship:{payload['order_id']}",
    max_attempts=100,
    backoff=fixed(0, jitter=False),
)

# `rowcall migrate` creates this definition.
STOCKTAKE = Definition("stocktake", PACK, "@yearly", payload={"order_id": 1})
