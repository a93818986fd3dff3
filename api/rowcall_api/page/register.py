"""Registers the page in an application, with its pool, its environment and its screens."""

from __future__ import annotations

import flask
from psycopg2.extensions import parse_dsn

from rowcall.base.database.pool import open_pool
from rowcall.base.settings import Settings
from rowcall_api.http.database import ANSWER_SECONDS
from rowcall_api.page import access, reading
from rowcall_api.page.blueprint import ENVIRONMENT, FORMS_POOL, blueprint
from rowcall_api.page.screens import (  # noqa: F401 - each adds its views to the blueprint
    admin,
    definitions,
    effects,
    failures,
    files,
    find,
    operations,
    overview,
    queues,
    run,
    runs,
    sign_in,
    steering,
    workers,
)
from rowcall_api.page.slots import SLOTS, Slots
from rowcall_api.standby.requests import STANDBY

# How many forms a process of the API carries out at the same time; others wait a little.
FORMS_AT_ONCE = 1

# Names that teams give to environments that must not be mistaken for others, and the colour that warns of each.
COLOURS = {
    **dict.fromkeys(("prod", "production", "live"), "red"),
    **dict.fromkeys(("staging", "stage", "preview", "qa", "test"), "amber"),
    **dict.fromkeys(("local", "dev", "development"), "green"),
}


def register(app: flask.Flask, settings: Settings, url: str) -> None:
    """Serve the page; each process of the API opens its connections when the first operator comes."""
    app.extensions[reading.POOL] = reading.pool(url)
    if settings.read_url:
        app.extensions[reading.STANDBY_POOL] = reading.pool(settings.read_url, app.extensions[STANDBY].answers)
    app.extensions[FORMS_POOL] = open_pool(url, FORMS_AT_ONCE, ANSWER_SECONDS, reading.PART_SECONDS)
    # Each slot has a connection, and one thread remains for the API's other requests.
    app.extensions[SLOTS] = Slots(max(1, min(reading.CONNECTIONS, settings.api_threads - 1)))
    app.extensions[access.WITHOUT_TLS] = settings.page_without_tls
    app.extensions[ENVIRONMENT] = _environment(settings.environment, url)
    app.register_blueprint(blueprint)


def front() -> flask.typing.ResponseReturnValue:
    """Redirect / to the page; an app may replace this with its own route."""
    return flask.redirect("admin")


def _environment(name: str | None, url: str) -> tuple[str, str]:
    """Return the name of the environment and its colour; without a name, return the database's and no colour."""
    if name is None:
        return parse_dsn(url).get("dbname", "database"), "grey"
    return name, COLOURS.get(name.lower(), "blue")
