"""The feed of events: one reader for all its clients in this process."""

from __future__ import annotations

import json
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import sqlalchemy

from rowcall.base.clock import elapsed
from rowcall.base.errors import RowcallError
from rowcall.base.logs import LogEvent, log
from rowcall.queue.views import events
from rowcall.queue.views.events import RESET, Event
from rowcall.queue.views.keys import still_valid
from rowcall_api.http.database import reachable
from rowcall_api.http.waiting.poller import Poller, Reader

# How long the feed continues without a client, so that a client that reconnects misses nothing.
LINGER_SECONDS = 60.0

# After a longer pause, such as an outage, changes may be missing.
PAUSE_SECONDS = 5.0

# How long events are kept for clients that resume, and how many at most.
KEPT = timedelta(seconds=60)
KEPT_MOST = 20_000

# Two processes that read at the same time may see transactions in different orders.
MARGIN = timedelta(seconds=2)

# After this long without events, a client gets a new id: its id never becomes too old, and no proxy disconnects it.
QUIET_SECONDS = 15.0

# The most unsent text that is kept for a client.
UNSENT_BYTES = 1024 * 1024

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Enough until the year 2286.
MICROSECONDS_DIGITS = 16


class Filter(NamedTuple):
    """Which runs a client wants; None for all."""

    job_type: str | None = None
    queue: str | None = None

    def passes(self, event: Event) -> bool:
        """Return whether the client gets this event."""
        if event.kind != "run":
            return True
        wanted = ((self.job_type, event.data["job_type"]), (self.queue, event.data["queue"]))
        return all(name in (None, found) for name, found in wanted)


@dataclass(eq=False)
class Client:
    """A client: the events that it wants, its last id, and the text to send to it."""

    wanted: Filter
    last_id: str | None
    key_id: int
    tell: Callable[[], object] = lambda: None
    begun: bool = False
    sent_at: float = field(default_factory=elapsed)
    unsent: bytes = b""
    refused: bool = False

    def take(self) -> bytes | None:
        """Return the text to send; None if it is too long, or if the client's key is no longer valid."""
        text, self.unsent = self.unsent, b""
        return None if self.refused or len(text) > UNSENT_BYTES else text


class Read(NamedTuple):
    """What one read found, and which of the clients' keys were still valid."""

    at: datetime
    events: Sequence[Event]
    valid_keys: frozenset[int]


class Feed(Reader):
    """The events of this process, and their clients."""

    def __init__(self, pool: sqlalchemy.Engine, poller: Poller, heartbeat: float) -> None:
        self._pool = pool
        self._poller = poller
        self._heartbeat = heartbeat
        self._clients: dict[Client, None] = {}
        self._name = secrets.token_hex(4)
        self._wanted_at = self._read_at = -PAUSE_SECONDS - LINGER_SECONDS
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._sources = (events.RunEvents(), events.WorkerEvents(self._heartbeat), events.OperationEvents())
        self._reads: deque[Read] = deque()

    @property
    def needed(self) -> bool:
        """Whether there is a client, or one may soon reconnect."""
        return bool(self._clients) or elapsed() < self._wanted_at + LINGER_SECONDS

    def begin(self, client: Client, tell: Callable[[], object]) -> Callable[[], None]:
        """Tell this client about each event; return a function that stops this."""
        client.tell = tell
        self._clients[client] = None
        self._wanted_at = elapsed()
        self._poller.wake()
        return partial(self._end, client)

    def _end(self, client: Client) -> None:
        self._clients.pop(client, None)
        self._wanted_at = elapsed()

    def run_once(self) -> None:
        """Read what has changed, and tell all clients."""
        clients = self._clients.copy()  # other threads add and remove some
        try:
            found = self._read({client.key_id for client in clients})
        except RowcallError:
            return  # requests report the error, and the next read says whether something may be missing
        except Exception as error:
            log().error(LogEvent.API_REQUEST_FAILED, exc_info=error)
            return
        same: dict[Filter, str] = {}
        for client in clients:
            if client.key_id not in found.valid_keys:
                client.refused = True
                client.tell()
                continue
            if not client.begun:
                text = self._text_of(self._since(client.last_id), client.wanted, found.at)
            else:
                if client.wanted not in same:
                    same[client.wanted] = self._text_of(found.events, client.wanted, found.at)
                text = same[client.wanted]
            if not client.begun or "data:" in text or elapsed() > client.sent_at + QUIET_SECONDS:
                client.begun = True
                client.unsent += text.encode()
                client.sent_at = elapsed()
                client.tell()

    def _read(self, key_ids: set[int]) -> Read:
        """Read all sources, and check whether these keys are valid, in one short transaction."""
        missed = elapsed() - self._read_at > PAUSE_SECONDS
        if missed:
            self._begin_anew()
        with reachable(self._pool, changes=False) as connection:
            at = events.now(connection)
            found = [event for source in self._sources for event in source.read(connection)]
            valid_keys = still_valid(connection, key_ids)
        self._read_at = elapsed()
        read = Read(at, [RESET, *found] if missed else found, valid_keys)
        self._reads.append(read)
        while self._reads[0].at < at - KEPT or sum(len(kept.events) for kept in self._reads) > KEPT_MOST:
            self._reads.popleft()
        return read

    def _text_of(self, told: Sequence[Event], wanted: Filter, at: datetime) -> str:
        """Return, as text, the events that a client wants, followed by the id of the read.

        The id comes last, so that a client that has received only part of the text gets all of it again.
        """
        lines = [f"event: {event.kind}\ndata: {json.dumps(event.data)}\n\n" for event in told if wanted.passes(event)]
        microseconds = (at - EPOCH) // timedelta(microseconds=1)
        return f"{''.join(lines)}id: {microseconds}-{self._name}\n\n"

    def _since(self, last_id: str | None) -> list[Event]:
        """Return the events since the read with this id, or RESET if these are no longer known."""
        number, _, name = (last_id or "").partition("-")
        if not (number.isascii() and number.isdecimal() and len(number) <= MICROSECONDS_DIGITS):
            return [RESET]
        seen = EPOCH + timedelta(microseconds=int(number))
        since = seen if name == self._name else seen - MARGIN
        if not self._reads or not self._reads[0].at <= since <= self._reads[-1].at:
            return [RESET]
        return [event for read in self._reads if read.at > since for event in read.events]
