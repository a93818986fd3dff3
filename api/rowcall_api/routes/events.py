"""/v1/events: a feed of what happens to runs, workers and operations."""

from __future__ import annotations

from typing import Any

import flask

from rowcall.base.errors import DatabaseUnavailable
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.guard import returns
from rowcall_api.http.waiting.feed import Client, Feed, Filter
from rowcall_api.http.waiting.parking import PLACE, Waiting, memory
from rowcall_api.schemas.waiting.events import EventSchema, EventsHeaders, EventsQuery

blueprint = BodyBlueprint("events", __name__, url_prefix="/v1/events", description="What happens.")

FORMAT = "text/event-stream"

# Milliseconds after which a client reconnects.
BEGINNING = "retry: 2000\n\n"

# A new client gets an event at the next read, which is at most half a second away.
FIRST_SECONDS = 5.0


@blueprint.get("")
@blueprint.arguments(EventsQuery, location="query")
@blueprint.arguments(EventsHeaders, location="headers")
@blueprint.response(200, EventSchema, content_type=FORMAT, description="Server-sent events.")
@returns(FORMAT)
@needs("read")
def list_events(query: dict[str, Any], headers: dict[str, Any]) -> flask.Response:
    """Follow what happens to runs, workers and operations, as server-sent events.

    `run`: a run has a new status.  `worker`: a worker has started or is gone.  `operation`: an operation has made
    progress.  `reset`: the client must read the lists again; the feed begins with a `reset`, unless the client resumes
    from a `Last-Event-ID`.  `partial`: too many runs are waiting or running to report every change.  Until the next
    `reset`, a run that starts and ends within half a second may be left out, and so may an operator's change to a run
    that is not running.
    """
    feed: Feed = flask.current_app.extensions["feed"]
    place, seconds = PLACE.get(), query.pop("wait")
    asked = Client(Filter(**query), headers["last_event_id"], flask.g.caller.key_id)
    if place is not None and seconds and flask.request.method == "GET":
        body = place.stream(seconds, BEGINNING.encode(), lambda tell: feed.begin(asked, tell), asked.take)
        return flask.Response(body, mimetype=FORMAT, headers={"X-Accel-Buffering": "no"})
    noted = memory()
    client = noted.setdefault("client", asked)
    waiting: Waiting = flask.current_app.extensions["waiting"]
    waiting.until(FIRST_SECONDS, lambda tell: feed.begin(client, tell))
    text = client.take()
    if not text:
        raise DatabaseUnavailable("the events could not be read: try again in a moment")
    return flask.Response(BEGINNING.encode() + text, mimetype=FORMAT)
