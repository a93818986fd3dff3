"""Registers with an application what its waiting requests need."""

from __future__ import annotations

import flask
import sqlalchemy

from rowcall_api.http.waiting.awaited import AwaitedRuns
from rowcall_api.http.waiting.feed import Feed
from rowcall_api.http.waiting.parking import Waiting
from rowcall_api.http.waiting.poller import Poller


def register(app: flask.Flask, pool: sqlalchemy.Engine, threads: int, heartbeat: float) -> None:
    """Let requests of this application wait; in a server that cannot park them, in at most a quarter of its threads."""
    poller = Poller()
    awaited, feed = AwaitedRuns(pool, poller), Feed(pool, poller, heartbeat)
    poller.add(awaited)
    poller.add(feed)
    app.extensions.update({"waiting": Waiting(max(1, threads // 4)), "awaited_runs": awaited, "feed": feed})
