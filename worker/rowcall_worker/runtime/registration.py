"""The worker's row in `workers`: made when it starts; for `once` with nothing due, made and ended in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import psycopg2

from rowcall.base.clock import elapsed
from rowcall.base.database import all_or_nothing
from rowcall.base.outages import can_be_tried_again, is_outage
from rowcall.definitions import visit_idle
from rowcall.queue.queues import make_queues
from rowcall.queue.workers import Registration, register
from rowcall.schema import check_revision
from rowcall_worker.runtime.connection import CONNECTION_ERRORS, Link
from rowcall_worker.runtime.signals import StopSignal

# How long `worker run` tries to register: a server or a pooler restarts within seconds.
START_SECONDS = 20.0


def finds_idle(link: Link, worker: Registration, limited_queues: Sequence[str]) -> bool:
    """Return whether nothing at all is due; record the visit then.

    If the database refuses that, perhaps because a table is locked, the usual way tries again or says why.
    """
    try:
        return visit_idle(link.get(), worker, limited_queues)
    except psycopg2.Error as error:
        if is_outage(error):
            raise
        return False


def register_worker(
    link: Link, worker: Registration, limited_queues: Sequence[str], once: bool, stop: StopSignal, wake: Event
) -> None:
    """Register the worker; one that stays keeps trying for a while if the database cannot be used.

    After that it exits, and its service manager restarts it.
    """
    until = elapsed() + (0 if once else START_SECONDS)
    while True:
        try:
            connection = link.get()
            with all_or_nothing(connection):
                check_revision(connection)
                make_queues(connection, limited_queues)
                register(connection, worker)
            break
        except CONNECTION_ERRORS as error:
            if stop.asked or elapsed() >= until or not can_be_tried_again(error):
                raise
            wake.wait(link.lost(error))
    link.works()
