"""Deprecated operations: their responses announce the removal in advance (RFC 9745, RFC 8594), as does OpenAPI."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import flask
from werkzeug.http import http_date

# docs/api.md promises this much time between the first release with the header and the removal.
NOTICE = timedelta(days=180)


@dataclass(frozen=True)
class Deprecated:
    """When an operation became deprecated, when it may be removed, and what to use instead."""

    since: datetime
    until: datetime
    instead: str

    def __post_init__(self) -> None:
        assert self.until - self.since >= NOTICE, f"an operation stays for {NOTICE.days} days after its deprecation"


# Endpoint, such as `runs.list_runs` -> its deprecation.
DEPRECATED: dict[str, Deprecated] = {}


def register(app: flask.Flask) -> None:
    """Add the headers to the responses of these operations."""
    app.after_request(_announce)


def _announce(response: flask.Response) -> flask.Response:
    found = DEPRECATED.get(flask.request.endpoint or "")
    if found is not None:
        response.headers["Deprecation"] = f"@{int(found.since.timestamp())}"
        response.headers["Sunset"] = http_date(found.until)
    return response
