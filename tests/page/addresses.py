"""The address of every screen that shows what is in the database."""

from __future__ import annotations

import flask

from rowcall_api.page.access import OPEN
from tests.page.filled import Filled

# Lists with filters and in the other order, besides each screen of the test data.
MORE = (
    "?range=7d",
    "/runs",
    "/runs?order=asc",
    "/runs?job_type=noop&queue=lane-0",
    "/runs?error_type=ValueError&count=yes",
    "/runs?definition=nightly-report",
    "/queues/lane-0",
    "/failures?job_type=noop",
    "/failures/attempts?hours=168&job_type=noop",
    "/operations/new/cancel?queue=lane-0",
    "/find?q=order-4711",
)


def addresses(app: flask.Flask, filled: Filled) -> list[str]:
    """Return the address of every screen, without /admin; fail if the URL map has another screen."""
    found = [*filled.screens.values(), *MORE, f"/runs?key=order-{filled.dead}"]
    urls = app.url_map.bind("localhost")
    asked = {urls.match(f"/admin{path.partition('?')[0]}")[0] for path in found}
    shown = {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("page.") and "GET" in (rule.methods or ()) and not _is_open(app, rule.endpoint)
    }
    assert asked == shown
    return found


def without_ids(app: flask.Flask) -> list[str]:
    """Return the addresses of the screens that need no id."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith("page.")]
    return sorted(
        str(rule)
        for rule in rules
        if not rule.arguments and "GET" in (rule.methods or ()) and "sign-in" not in str(rule)
    )


def _is_open(app: flask.Flask, endpoint: str) -> bool:
    """Whether a view needs no session, so that it shows nothing of the database."""
    return bool(getattr(app.view_functions[endpoint], OPEN, False))
