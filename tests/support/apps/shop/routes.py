"""The shop's endpoints, some below the API's paths and some elsewhere."""

from typing import Any

from flask.views import MethodView
from marshmallow import Schema, fields
from werkzeug.exceptions import NotFound

from rowcall_api.app_routes import (
    Answer,
    Blueprint,
    EnqueueHeaders,
    Problem,
    answers_with_a_run,
    enqueue_and_answer,
    needs,
    transaction,
)

from .job_types import PACK

orders = Blueprint("orders", __name__, url_prefix="/v1/orders", description="The shop's orders.")
counter = Blueprint("counter", __name__, url_prefix="/counter", description="The shop's counter.")


class Shelf(Schema):
    """A place in the shop."""

    shelf = fields.Integer(required=True)


class ShelfQuery(Schema):
    """A place to look at."""

    shelf = fields.Integer(load_default=1)


@orders.post("/<int:order_id>/pack")
@orders.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(orders)
@needs("enqueue")
def pack_order(headers: dict[str, Any], order_id: int) -> Answer:
    """Pack an order."""
    return enqueue_and_answer(PACK.name, {"order_id": order_id}, headers["idempotency_key"])


@orders.get("/<int:order_id>")
@orders.response(200, Shelf)
@needs("read")
def show_order(order_id: int) -> dict[str, int]:
    """Show where an order is; order 1 is sold out, order 2 does not exist, and order 3 breaks the route."""
    if order_id == 1:
        raise Problem(409, "order-sold-out", "order 1 is sold out", errors={"order_id": "is sold out"})
    if order_id == 2:
        raise NotFound("there is no order 2")
    if order_id == 3:
        raise ValueError("shelf 3 has fallen down")
    with transaction() as connection:
        shelf: int = connection.exec_driver_sql("SELECT 7").scalar_one()
    return {"shelf": shelf}


@counter.post("/bell")
@counter.arguments(Shelf)
@counter.response(200, Shelf)
def ring(shelf: dict[str, Any]) -> dict[str, Any]:
    """Ring the bell; the route names no scope, so only an admin may call it."""
    return shelf


@counter.route("/till")
class Till(MethodView):
    """The till."""

    @counter.arguments(ShelfQuery, location="query")
    @counter.response(200, Shelf)
    @needs("read")
    def get(self, query: dict[str, Any]) -> dict[str, Any]:
        """Show what is in it."""
        return query

    @counter.response(200, Shelf)
    @needs("operate")
    def delete(self) -> dict[str, int]:
        """Empty it."""
        return {"shelf": 0}
