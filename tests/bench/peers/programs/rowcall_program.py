"""Rowcall, as an app uses it; `plain` is the plain SQL that does the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import psycopg2
from bench_app.job_types import NOTHING
from moments import DATABASE_URL, Handled, asked, chunks, keys_of, paced, timed, write

from rowcall.base.child_processes import own_command
from rowcall.cli.__main__ import main as rowcall
from rowcall.queue.sleepers import fall_asleep
from rowcall.queue.workers import Registration, register
from tests.bench import bare


def main() -> None:
    """Do what the driver asks for."""
    command, options = asked()
    if command == "setup":
        subprocess.run(own_command("migrate"), check=True)
    elif command == "worker" and options.get("plain"):
        work_plainly(options["record"])
    elif command == "worker":
        os.environ["BENCH_RECORD"] = str(options["record"])
        sys.argv = ["rowcall", "worker", "run"]
        rowcall()
    else:
        connection = _connected()
        if command == "paced":
            paced(options, lambda number: NOTHING.enqueue(connection, {"number": number}))
        else:
            {"single": single, "bulk": bulk}[command](connection, options)


def single(connection: Any, options: dict[str, Any]) -> None:
    """Enqueue jobs one by one, each with its own commit."""
    count = options["count"]
    if options.get("plain"):
        timed(count, lambda: bare.insert_one_by_one(connection, count))
    else:
        timed(count, lambda: [NOTHING.enqueue(connection, {"number": number}) for number in range(count)])


def bulk(connection: Any, options: dict[str, Any]) -> None:
    """Enqueue jobs many at a time, with a key each if asked."""
    enqueue = insert_together if options.get("plain") else enqueue_together

    def enqueue_all() -> None:
        for chunk in chunks(options["count"], options["chunk"]):
            enqueue(connection, chunk, keys_of(chunk) if options.get("keyed") else None)

    timed(options["count"], enqueue_all)


def enqueue_together(connection: Any, chunk: range, keys: list[str] | None) -> None:
    """Enqueue these jobs with one call."""
    NOTHING.enqueue_many(connection, [{"number": number} for number in chunk], keys=keys)


def insert_together(connection: Any, chunk: range, keys: list[str] | None) -> None:
    """Insert these jobs with one statement."""
    if keys is None:
        bare.insert_many(connection, len(chunk))
    else:
        bare.insert_many_with_keys(connection, keys)


def work_plainly(record: int) -> None:
    """Claim and finish until nothing is left, or claim at each notification and record when."""
    connection = _connected()
    if record:
        register(connection, Registration("bare", "bench", 0, "0", None, [NOTHING.name], 1))
        fall_asleep(connection, "bare", 3600)
        handled = Handled(record)
        bare.listen(connection, lambda claimed: handled.call(claimed.payload["number"]), lambda: False)
    write("first", time.monotonic_ns())
    bare.drain(connection)
    time.sleep(3600)  # until the driver stops it


def _connected() -> Any:
    connection = psycopg2.connect(DATABASE_URL)
    connection.autocommit = True
    return connection


if __name__ == "__main__":
    main()
