"""Let go of runs whose messages the broker has confirmed: their leases go on under the messages' names."""

from __future__ import annotations

from rowcall.base.database import PgConnection
from rowcall.queue import hand_over, owned
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.runtime.in_flight import InFlight

# How a worker counts these runs, beside those that ended with a status.
HANDED_OVER = "handed over"


def let_go(connection: PgConnection, in_flight: InFlight, ended: list[InFlightRun]) -> None:
    """Write who has the leases of the runs that were handed over; remove these runs from the list and from flight.

    A run whose row is locked is written later.  One that is not found has been begun by its consumer.
    """
    holders = {run.lease: run.result.holder for run in ended if run.result.holder is not None}
    if not holders:
        return
    written = hand_over(connection, holders)
    locked = owned(connection, [lease for lease in holders if lease.run_id not in written])
    in_flight.put_off([run for run in ended if run.lease in locked])
    gone = [run for run in ended if run.lease in holders.keys() - locked]
    in_flight.written(gone, [HANDED_OVER] * len(gone))
    ended[:] = [run for run in ended if run.lease not in holders]
