"""The plain route with the duties of `POST /v1/runs`: it looks up a key, applies the schemas, and answers with the run.

It has none of the guards: no scope, no rate limit, no limit of the body, no idempotency key, no access line.
"""

from __future__ import annotations

import os
from typing import Any

import flask
from flask_smorest import Api, Blueprint

from rowcall.access.api_keys import find_caller
from rowcall.base.database import Row, fetch_value
from rowcall.base.database.pool import open_pool
from rowcall.queue import get_run
from rowcall_api.schemas.runs import EnqueueSchema, RunSchema
from tests.bench import bare
from tests.bench.http import THREADS

app = flask.Flask("alike")
app.config.update(API_TITLE="alike", API_VERSION="1", OPENAPI_VERSION="3.0.3")
pool = open_pool(os.environ["DATABASE_URL"], THREADS)
blueprint = Blueprint("runs", __name__, url_prefix="/v1/runs")


def insert(sent: dict[str, Any]) -> Row:
    """Insert a run, and answer with it."""
    with pool.begin() as connection:
        assert find_caller(connection, flask.request.headers["Authorization"].removeprefix("Bearer "))
    payload = flask.json.dumps(sent["payload"])
    with pool.begin() as connection:
        return get_run(connection, fetch_value(connection, bare.INSERT, {"payload": payload}))


answered = blueprint.response(202, RunSchema)(insert)
blueprint.post("")(blueprint.arguments(EnqueueSchema())(answered))
Api(app).register_blueprint(blueprint)
