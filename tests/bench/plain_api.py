"""A Flask app whose one route inserts a row: what `POST /v1/runs` is compared with."""

from __future__ import annotations

import os

import flask

from rowcall.base.database import fetch_value
from rowcall.base.database.pool import open_pool
from tests.bench import bare
from tests.bench.http import THREADS

app = flask.Flask("plain")
pool = open_pool(os.environ["DATABASE_URL"], THREADS)


@app.post("/v1/runs")
def insert() -> tuple[dict[str, int], int]:
    """Insert the payload."""
    payload = flask.json.dumps(flask.request.get_json()["payload"])
    with pool.begin() as connection:
        return {"id": fetch_value(connection, bare.INSERT, {"payload": payload})}, 201
