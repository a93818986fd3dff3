"""Enqueues jobs of graphile-worker from Python, for the time from commit to handler.

Node.js notices a commit later than psycopg2 does, so a client in Node.js would make that time look shorter.
"""

from __future__ import annotations

import json

import psycopg2
from moments import DATABASE_URL, asked, paced

ADD = "SELECT graphile_worker.add_job('nothing', %s::json)"


def main() -> None:
    """Do what the driver asks for, which is only `paced`."""
    _, options = asked()
    connection = psycopg2.connect(DATABASE_URL)
    connection.autocommit = True
    cursor = connection.cursor()
    paced(options, lambda number: cursor.execute(ADD, [json.dumps({"number": number})]))


if __name__ == "__main__":
    main()
