"""The shop's own SQL."""

from rowcall.base.database import PgConnection, fetch_all


def book_order(connection: PgConnection, order_id: int) -> None:
    """Record that an order was booked."""
    fetch_all(
        connection,
        "INSERT INTO bookings (order_id) VALUES (%(order_id)s)",
        {"order_id": order_id},
    )


def ship_order(connection: PgConnection, order_id: int) -> None:
    """Record that an order was shipped; a second shipment is not refused, so that a test can see it."""
    fetch_all(connection, "INSERT INTO shipments (order_id) VALUES (%(order_id)s)", {"order_id": order_id})


def lose_lease(connection: PgConnection, run_id: int) -> None:
    """Give the run another lease before this transaction commits, as if the worker had been frozen."""
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(run_id)s", {"run_id": run_id}
    )
