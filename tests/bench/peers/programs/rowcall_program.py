"""Rowcall, as an app uses it; `plain` is the plain SQL that does the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import psycopg2
from bench_app.job_types import NOTHING
from moments import DATABASE_URL, asked, chunks, timed, write

from rowcall.base.child_processes import own_command
from rowcall.cli.__main__ import main as rowcall
from tests.bench import bare


def main() -> None:
    """Do what the driver asks for."""
    command, options = asked()
    if command == "setup":
        subprocess.run(own_command("migrate"), check=True)
    elif command == "worker" and options.get("plain"):
        drain_plainly()
    elif command == "worker":
        os.environ["BENCH_RECORD"] = str(options["record"])
        sys.argv = ["rowcall", "worker", "run"]
        rowcall()
    else:
        connection = psycopg2.connect(DATABASE_URL)
        connection.autocommit = True
        {"single": single, "bulk": bulk, "paced": paced}[command](connection, options)


def single(connection: Any, options: dict[str, Any]) -> None:
    """Enqueue jobs one by one, each with its own commit."""
    count = options["count"]
    if options.get("plain"):
        timed(count, lambda: bare.insert_one_by_one(connection, count))
    else:
        timed(count, lambda: [NOTHING.enqueue(connection, {"number": number}) for number in range(count)])


def bulk(connection: Any, options: dict[str, Any]) -> None:
    """Enqueue jobs many at a time."""

    def enqueue() -> None:
        for chunk in chunks(options["count"], options["chunk"]):
            if options.get("plain"):
                bare.insert_many(connection, len(chunk))
            else:
                NOTHING.enqueue_many(connection, [{"number": number} for number in chunk])

    timed(options["count"], enqueue)


def paced(connection: Any, options: dict[str, Any]) -> None:
    """Enqueue a job now and then, and write when each was committed."""
    committed = []
    for number in range(options["count"]):
        time.sleep(options["pause"])
        NOTHING.enqueue(connection, {"number": number})
        committed.append((number, time.monotonic_ns()))
    write("committed", committed)


def drain_plainly() -> None:
    """Claim and finish until nothing is left."""
    connection = psycopg2.connect(DATABASE_URL)
    connection.autocommit = True
    write("first", time.monotonic_ns())
    bare.drain(connection)
    time.sleep(3600)  # until the driver stops it


if __name__ == "__main__":
    main()
