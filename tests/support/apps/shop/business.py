"""The shop's own SQL."""

from rowcall.base.database import PgConnection, fetch_all


def book_order(connection: PgConnection, order_id: int) -> None:
    """Write down that an order was booked."""
    fetch_all(
        connection,
        "INSERT INTO bookings (order_id) VALUES (%(order_id)s)",
        {"order_id": order_id},
    )


def ship_order(connection: PgConnection, order_id: int) -> None:
    """Write down that an order was shipped; a shipment too many is not refused, it shows."""
    fetch_all(connection, "INSERT INTO shipments (order_id) VALUES (%(order_id)s)", {"order_id": order_id})


def lose_lease(connection: PgConnection, run_id: int) -> None:
    """What happens to a worker that was frozen: the run has another lease before this transaction commits."""
    fetch_all(
        connection, "UPDATE rowcall.job_runs SET lease_no = lease_no + 1 WHERE id = %(run_id)s", {"run_id": run_id}
    )
