"""Waiting for a run, and through an outage of the database."""

from __future__ import annotations

import time
from datetime import timedelta

import click

from rowcall import queue
from rowcall.base.clock import elapsed
from rowcall.base.durations import duration_words
from rowcall.cli.session import command_transaction, survived_outage
from rowcall.status import FINAL, Status

# The longest duration that an option takes.
UNTIL_IT_ENDS = timedelta(days=3653)

# The time between two reads.
PAUSE_SECONDS = 0.5


def status_at_end(run_id: int, longest: timedelta) -> Status:
    """Wait until the run has ended, but at most this long; return its status.

    If the database becomes unavailable after the first read, say so once, and continue.
    """
    until, told = elapsed() + longest.total_seconds(), False
    status = _status(run_id)
    if status not in FINAL:
        most = "" if longest == UNTIL_IT_ENDS else f", at most {duration_words(longest)}"
        click.echo(f"run {run_id} is {status}; waiting until it ends{most}", err=True)
    while status not in FINAL and (left := until - elapsed()) > 0:
        time.sleep(min(PAUSE_SECONDS, left))  # no notification says that a run has ended; Ctrl-C interrupts the sleep
        with survived_outage() as outage:
            status, told = _status(run_id), False
        if outage.reason and not told:
            click.echo(f"{outage.reason}; still waiting", err=True)
        told = told or outage.reason is not None
    return status


def _status(run_id: int) -> Status:
    with command_transaction() as connection:
        return Status(queue.get_run(connection, run_id)["status"])
