"""What other sessions cost: those that listen, and those that idle."""

from __future__ import annotations

import select
from contextlib import ExitStack, closing
from pathlib import Path

from rowcall.base.database import PgConnection, fetch_all
from rowcall.queue.fragments import CHANNEL
from tests.bench.history import backend_seconds
from tests.bench.measures import Bench
from tests.bench.scaling.statements import Table, exchange
from tests.bench.scaling.usage import cpu_us

LISTENERS = (1, 10, 100, 500)
NOTIFICATIONS = 40
IDLE_MEMORY = "Private_Dirty:"


def listeners(bench: Bench) -> dict[str, object]:
    """Return what a notification costs its sender and each listener, and what 500 idle sessions cost an exchange."""
    sender: Table = {}
    listener: Table = {}
    alone, _ = exchange(bench, 10, 200)
    with ExitStack() as stack, closing(bench.connect()) as connection:
        listening: list[PgConnection] = []
        for count in LISTENERS:
            while len(listening) < count:
                listening.append(stack.enter_context(closing(bench.connect())))
                fetch_all(listening[-1], f"LISTEN {CHANNEL}")
            sender[count], listener[count] = _notified(connection, listening)
        beside, _ = exchange(bench, 10, 200)
        memory = [_private_bytes(other.info.backend_pid) for other in listening[:20]]
    return {
        "sender_us": sender,
        "listener_us": listener,
        "beside_500_idle": beside / alone,
        "idle_bytes": sum(memory) / len(memory),
    }


def _notified(connection: PgConnection, listening: list[PgConnection]) -> tuple[float, float]:
    """Send notifications, each when all sessions have the one before; return the microseconds of sender and listener.

    As in an enqueue, each is sent by a transaction that also writes.
    """
    pids = [other.info.backend_pid for other in listening]
    for _ in range(2):  # the first time warms up
        sent, heard = backend_seconds(connection), cpu_us(pids)
        for _ in range(NOTIFICATIONS):
            fetch_all(connection, f"SELECT pg_current_xact_id(), pg_notify('{CHANNEL}', '')")
            _await_all(listening)
        sent, heard = backend_seconds(connection) - sent, cpu_us(pids) - heard
    return sent / NOTIFICATIONS * 1e6, heard / NOTIFICATIONS / len(listening)


def _await_all(listening: list[PgConnection]) -> None:
    waiting = {other.fileno(): other for other in listening}
    poller = select.poll()
    for descriptor in waiting:
        poller.register(descriptor, select.POLLIN)
    while waiting:
        for descriptor, _ in poller.poll():
            waiting[descriptor].poll()
            if waiting[descriptor].notifies:
                waiting[descriptor].notifies.clear()
                poller.unregister(descriptor)
                del waiting[descriptor]


def _private_bytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(IDLE_MEMORY)]
    return float(line.split()[1]) * 1024
