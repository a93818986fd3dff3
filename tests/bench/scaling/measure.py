"""Measure all inputs of the model, and write docs/benchmarks/costs.json."""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rowcall.local_postgres.server import open_server
from rowcall_migrations.migrate import migrate
from tests.bench import costs
from tests.bench.measures import Bench, processor
from tests.bench.scaling import sessions, statements, workers
from tests.bench.scaling.usage import Usage
from tests.support.processes import ROOT
from tests.support.superuser import let_do_all

FILE = ROOT / "docs" / "benchmarks" / "costs.json"

# 500 sessions listen.  Full page images depend on when the last checkpoint was, and would hide what a statement writes;
# so would a vacuum, which is measured by itself.
OPTIONS = {"max_connections": "600", "full_page_writes": "off", "autovacuum": "off"}
IDLE_SECONDS = 20.0
# Runs a second, for so many seconds, with handlers that do nothing.
SMALL_LOAD = (50, 5, 0.0)

Found = TypeVar("Found")


def write_costs(source: str) -> None:
    """Measure on a server of its own, and write the file."""
    with tempfile.TemporaryDirectory() as home, open_server(Path(home), source, options=OPTIONS) as server:
        migrate(let_do_all(Path(home), server.url), lock_timeout=3)
        found = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": {"cores": os.cpu_count(), "processor": processor(), "postgresql": server.version},
            **_measured(Bench(server.url), Path(home)),
        }
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(f"{FILE.relative_to(ROOT)} is written")


def _measured(bench: Bench, home: Path) -> dict[str, Any]:
    exchange_us, exchange_wal = _said("exchanges", lambda: statements.exchange_costs(bench))
    paced_us = _said("exchanges with pauses", lambda: statements.paced_costs(bench))
    enqueue_us, enqueue_wal = _said("enqueues", lambda: statements.enqueue(bench))
    sleep_us, sleep_wal = _said("a worker that falls asleep", lambda: statements.asleep(bench))
    heartbeat = _said("heartbeats", lambda: statements.heartbeat(bench))
    contention = _said("claimers at the same time", lambda: statements.contention(bench))
    vacuum = _said("vacuum", lambda: statements.vacuum(bench))
    space = _said("space of finished runs", lambda: statements.space(bench))
    pooled = _said("PgBouncer", lambda: _pooled(bench))
    disk = _said("disk", lambda: statements.disk(home))
    listeners = _said("listeners", lambda: sessions.listeners(bench))
    drained = _said("a worker that drains", lambda: costs.worker_drain(bench))
    idle = _said("an idle worker", lambda: workers.idle(bench, IDLE_SECONDS))
    loaded = _said("a worker under a small load", lambda: workers.loaded(bench, 1, *SMALL_LOAD))
    # Of the load, without what the worker does anyway, and without the commits of the enqueues.
    looks = loaded.used.minus(idle.times(loaded.seconds)).minus(Usage(0, 0, 0, SMALL_LOAD[0] * SMALL_LOAD[1]))
    return {
        "exchange_us": exchange_us,
        "paced_us": paced_us,
        "exchange_wal": exchange_wal,
        "contention": contention,
        "enqueue_us": enqueue_us,
        "enqueue_wal": enqueue_wal,
        "sleep_us": sleep_us,
        "sleep_wal": sleep_wal,
        "heartbeat_us": heartbeat,
        "pooled": pooled["server_us"] / exchange_us[10],
        "pooler_us": pooled["pooler_us"],
        **listeners,
        "vacuum_us": vacuum["server_us"],
        "vacuum_wal": vacuum["wal"],
        "vacuum_page_cost": vacuum["page_cost"],
        "run_program_us": drained.program,
        "look_program_us": looks.program_us / looks.commits,
        "idle": idle._asdict(),
        **space,
        **disk,
    }


def _said(name: str, measure: Callable[[], Found]) -> Found:
    click.echo(f"measuring {name}")
    return measure()


def _pooled(bench: Bench) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # PgBouncer runs as another user
        return statements.pooled(bench, Path(folder))
