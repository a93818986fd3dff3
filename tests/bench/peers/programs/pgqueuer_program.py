"""PgQueuer, on asyncpg and uvloop."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import asyncpg
import uvloop
from moments import DATABASE_URL, Handled, asked, chunks, keys_of, write
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def main() -> None:
    """Do what the driver asks for."""
    command, options = asked()
    driver = AsyncpgDriver(await asyncpg.connect(DATABASE_URL))
    queries = Queries(driver)
    if command == "setup":
        await queries.install()
    elif command == "worker":
        await work(driver, options)
    elif command == "paced":
        committed = []
        for number in range(options["count"]):
            await asyncio.sleep(options["pause"])
            await queries.enqueue("nothing", payload(number), 0)
            committed.append((number, time.monotonic_ns()))
        write("committed", committed)
    else:
        began = time.monotonic_ns()
        for chunk in chunks(options["count"], options.get("chunk", 1)):
            if command == "single":
                await queries.enqueue("nothing", payload(chunk[0]), 0)
            else:
                together = ["nothing"] * len(chunk), [payload(number) for number in chunk], [0] * len(chunk)
                keyed = {"dedupe_key": keys_of(chunk), "on_conflict": "skip"} if options.get("keyed") else {}
                await queries.enqueue(*together, **keyed)
        write("rate", options["count"] / (time.monotonic_ns() - began) * 1e9)


def payload(number: int) -> bytes:
    """Return what a job carries."""
    return json.dumps({"number": number}).encode()


async def work(driver: Any, options: dict[str, Any]) -> None:
    """Perform jobs until the driver stops this program."""
    handled = Handled(options["record"])
    worker = PgQueuer(driver)

    @worker.entrypoint("nothing")
    async def nothing(job: Any) -> None:
        handled.call(json.loads(job.payload)["number"])

    await worker.run(batch_size=options["batch"])


if __name__ == "__main__":
    uvloop.run(main())
