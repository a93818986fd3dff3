"""The Flask application: what a request meets on its way in, and which blueprints answer it."""

from __future__ import annotations

import flask

from api import database, door, interface, limits, request_log
from api.paths import RowId
from api.routes import (
    bulk,
    cleanups,
    definitions,
    docs,
    effects,
    explain,
    invoices,
    metrics,
    ops,
    reports,
    runs,
    stats,
    steering,
)
from shared import logs, settings
from shared.database import engine
from shared.job_types import catalogue
from shared.schema import check_revision

# A payload may be 64 KiB; the rest is room for the fields around it.
BODY_BYTES = 256 * 1024


def create_app(database_url: str) -> flask.Flask:
    """The application on this database, which must have this code's schema."""
    chosen = settings.read()
    logs.configure(chosen)
    catalogue()  # a wrong declaration must stop the start, not the first request
    app = flask.Flask("rowcall", static_folder=None)
    app.config.update(interface.CONFIG, MAX_CONTENT_LENGTH=BODY_BYTES)
    app.json.sort_keys = False  # type: ignore[attr-defined]  # the default provider has it
    pool = engine(database_url, pool_size=chosen.api_threads)
    with database.reachable(pool) as connection:
        check_revision(connection)
    # gunicorn forks after this, and a connection must not be shared with the children.
    pool.dispose()
    database.attach(app, pool)
    request_log.register(app)
    limits.register(app, chosen)
    door.register(app)
    app.url_map.converters["int"] = RowId
    # A path is what it is: no other one leads to the same route, and none is sent elsewhere.
    app.url_map.merge_slashes = False
    described = interface.Interface(app)
    for resource in (runs, steering, bulk, explain, definitions, effects, reports, cleanups, invoices, stats):
        described.register_blueprint(resource.blueprint)
    for page in (docs, metrics, ops):
        app.register_blueprint(page.blueprint)
    return app
