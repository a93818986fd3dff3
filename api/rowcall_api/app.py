"""Creates the Flask application, with its hooks and blueprints."""

from __future__ import annotations

from copy import deepcopy

import flask

from rowcall.base import logs, settings
from rowcall.base.database.pool import open_pool
from rowcall.job_types import catalogue
from rowcall.schema import check_revision
from rowcall_api import deprecation, traces
from rowcall_api.document.config import CONFIG
from rowcall_api.http import client_address, database, guard, openapi, rate_limit, request_log
from rowcall_api.http.paths import Rest, RowId
from rowcall_api.http.waiting import registration
from rowcall_api.mount import mount
from rowcall_api.page import register as page
from rowcall_api.payload_schemas import describe_payloads
from rowcall_api.routes import (
    batch,
    definitions,
    docs,
    effects,
    events,
    explain,
    job_types,
    metrics,
    operations,
    ops,
    queues,
    runs,
    stats,
    steering,
    workers,
)
from rowcall_api.routes.access import audit, keys
from rowcall_api.routes.lists import failures, files, series
from rowcall_api.standby import requests as standby
from rowcall_api.standby.standby import Standby

# A payload may be 64 KiB; the rest is for the other fields.
BODY_BYTES = 256 * 1024


def create_app(database_url: str) -> flask.Flask:
    """Return the application for this database, whose schema must be the one that this code expects."""
    chosen = settings.read()
    logs.configure(chosen)
    types = catalogue()  # fail at startup, not at the first request, if a declaration is wrong
    app = flask.Flask("rowcall", static_folder=None)
    # A copy, because flask-smorest adds the descriptions of this app's schemas to it.
    app.config.update(deepcopy(CONFIG), MAX_CONTENT_LENGTH=BODY_BYTES)
    app.json.sort_keys = False  # type: ignore[attr-defined]  # Flask's default provider has it
    # One connection more than threads: the poller reads what requests are waiting for.
    pool = open_pool(database_url, chosen.api_threads + 1, database.ANSWER_SECONDS)
    with database.reachable(pool) as connection:
        check_revision(connection)
    # gunicorn forks after this, and a connection must not be shared with the children.
    pool.dispose()
    database.attach(app, pool)
    registration.register(app, pool, chosen.api_threads, chosen.heartbeat)
    request_log.register(app)
    traces.register(app)
    client_address.register(app, chosen)
    rate_limit.register(app, chosen)
    guard.register(app)
    deprecation.register(app)
    if chosen.read_url:
        standby.register(app, Standby(database_url, chosen.read_url, chosen.api_threads))
    app.url_map.converters.update(int=RowId, rest=Rest)
    # Each route has exactly one path: //v1/runs is not redirected to /v1/runs.
    app.url_map.merge_slashes = False
    described = openapi.Interface(app)
    for resource in (
        runs,
        batch,
        steering,
        operations,
        explain,
        definitions,
        effects,
        queues,
        workers,
        events,
        job_types,
        keys,
        audit,
        stats,
        failures,
        files,
        series,
    ):
        described.register_blueprint(resource.blueprint)
    describe_payloads(described.spec, types)
    for plain in (docs, metrics, ops):
        app.register_blueprint(plain.blueprint)
    page.register(app, chosen, database_url)
    if chosen.app:
        mount(app, described, chosen.app)
    if not any(rule.rule == "/" for rule in app.url_map.iter_rules()):
        app.add_url_rule("/", view_func=page.front)
    return app
