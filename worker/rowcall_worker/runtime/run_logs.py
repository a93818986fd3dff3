"""Write the lines that handlers have logged, with the heartbeat or the ends of their attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import psycopg2
from psycopg2.errors import CheckViolation, ProgramLimitExceeded

from rowcall.base.database import PgConnection, all_or_nothing
from rowcall.base.logs import LogEvent, log
from rowcall.queue import Lease, write_log
from rowcall.queue.run_log import Lines
from rowcall_worker.attempt.in_flight_run import InFlightRun

# Errors that one row causes however often it is tried: its data cannot be stored or is too large.
REFUSALS = (psycopg2.DataError, CheckViolation, ProgramLimitExceeded)

# The lines may also need a privilege that this role lacks, because the grants are older than the table.
LINES_REFUSED = (*REFUSALS, psycopg2.ProgrammingError)

Written = TypeVar("Written")


def unwritten(runs: Iterable[InFlightRun]) -> Lines:
    """Return the lines of these runs that are not written yet."""
    return {run.lease: lines for run in runs if (lines := run.unwritten)}


def with_lines(runs: Sequence[InFlightRun], write: Callable[[Lines], Written]) -> Written:
    """Write these runs with their lines; if the database refuses the lines, write the runs without them."""
    lines = unwritten(runs)
    if not lines:
        return write({})
    try:
        return write(lines)
    except LINES_REFUSED as refused:
        done = write({})
        log().warning(LogEvent.RUN_LOG_REFUSED, error=refused.diag.message_primary, runs=[one.run_id for one in lines])
        return done


def written_with(
    connection: PgConnection, runs: Sequence[InFlightRun], write: Callable[[], tuple[Written, set[Lease]]]
) -> Written:
    """Write something about runs that continue, and their lines in the same transaction.

    `write` also returns the leases that it found, whose rows it has locked; the lines of others stay for the next time.
    """

    def write_both(lines: Lines) -> tuple[Written, Lines]:
        if not lines:
            return write()[0], {}
        with all_or_nothing(connection):
            done, found = write()
            there = {lease: of_lease for lease, of_lease in lines.items() if lease in found}
            write_log(connection, there)
        return done, there

    done, there = with_lines(runs, write_both)
    for run in runs:
        if run.log is not None and run.lease in there:
            run.log.written(there[run.lease][-1])
    return done
