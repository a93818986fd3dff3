"""The Flask application: what a request meets on its way in, and which blueprints answer it."""

from __future__ import annotations

from typing import Any

import flask
from flask_smorest import Api

from api import database, errors, request_log
from api.routes import definitions, explain, ops, runs
from shared import logs, settings
from shared.database import engine
from shared.job_types import catalogue
from shared.schema import check_revision

# A payload may be 64 KiB; the rest is room for the fields around it.
BODY_BYTES = 256 * 1024


class ProblemApi(Api):  # type: ignore[misc]  # flask-smorest carries no types
    """flask-smorest's Api, answering errors as problem documents."""

    ERROR_SCHEMA = errors.ProblemSchema

    def _register_error_handlers(self) -> None:
        """flask-smorest's hook for an application's own form of errors."""
        errors.register(self._app)


def create_app(database_url: str) -> flask.Flask:
    """The application on this database, which must have this code's schema."""
    chosen = settings.read()
    logs.configure(chosen)
    catalogue()  # a wrong declaration must stop the start, not the first request
    app = flask.Flask("rowcall", static_folder=None)
    app.config.update(_config())
    app.json.sort_keys = False  # type: ignore[attr-defined]  # the default provider has it
    pool = engine(database_url, pool_size=chosen.api_threads)
    with database.reachable(pool) as connection:
        check_revision(connection)
    # gunicorn forks after this, and a connection must not be shared with the children.
    pool.dispose()
    database.attach(app, pool)
    request_log.register(app)
    interface = ProblemApi(app)
    interface.register_blueprint(runs.blueprint)
    interface.register_blueprint(explain.blueprint)
    interface.register_blueprint(definitions.blueprint)
    app.register_blueprint(ops.blueprint)
    return app


def _config() -> dict[str, Any]:
    return {
        "MAX_CONTENT_LENGTH": BODY_BYTES,
        "API_TITLE": "Rowcall",
        "API_VERSION": "v1",
        "OPENAPI_VERSION": "3.1.0",
        "OPENAPI_URL_PREFIX": "/",
        "OPENAPI_JSON_PATH": "openapi.json",
        "API_SPEC_OPTIONS": {
            "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            "security": [{"key": []}],
        },
    }
