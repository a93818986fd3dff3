"""The publisher: sends a run's message to the broker and waits until it is confirmed.

The row is the outbox: a run whose message was not confirmed goes back to its queue, and while a broker takes no
messages, runs that would be sent there are not claimed.  kombu is imported here, and only if a job type hands over.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from rowcall.base.clock import elapsed
from rowcall.base.errors import LeaseLost, NotHandedOver, SettingsError, message_of
from rowcall.base.errors.sentences import one_line
from rowcall.base.settings import Settings
from rowcall.job_types import JobType
from rowcall.job_types.handover import Handover
from rowcall.queue import Claimed
from rowcall.queue.claims.handover import holder_of
from rowcall_worker.attempt.in_flight_run import InFlightRun
from rowcall_worker.attempt.result import AttemptResult
from rowcall_worker.runtime.handover.message import message_for

# How long the broker may take for each step: to accept a connection, to answer, to confirm a message.
ANSWER_SECONDS = 5.0

# A connection that was idle for longer is replaced: a firewall may have dropped it, and the next message would be lost.
IDLE_SECONDS = 30.0

# After a message was not confirmed, no run is claimed for its queue for this long, and then for twice as long.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

# What RabbitMQ replies to a message that no queue takes.
NO_ROUTE = 312

# AMQP's code for a queue that does not exist.
NO_SUCH_QUEUE = 404


@dataclass
class Pause:
    """Until when a queue gets no messages, because the last one was not confirmed."""

    # Why the broker has not taken the last message.
    why: str = ""
    _until: float = 0.0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return max(self._until - elapsed(), 0.0)

    def begin(self, why: str) -> None:
        """Begin a longer pause, unless another thread has just done so."""
        with self._lock:
            if not self.left:
                self.why = why
                self._seconds = min(self._seconds * 2 or FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
                self._until = elapsed() + self._seconds

    def end(self) -> None:
        """The queue has taken a message."""
        self._seconds = 0.0


class Publisher:
    """Publishes the messages of one worker; each handler thread keeps a connection to the broker."""

    def __init__(self, url: str, handovers: Mapping[str, Handover], leases: Mapping[str, float]) -> None:
        """`handovers` are those of the worker's job types; `leases` are the leases of all its types."""
        self._url = url
        self.handovers = handovers
        self._leases = leases
        self._pauses = {handover.queue: Pause() for handover in handovers.values()}
        self._of_thread = threading.local()
        self.broker = self._checked()

    def _checked(self) -> str:
        """Return the broker's address without its password; raise if kombu cannot use the URL."""
        try:
            connection = self._connection()
            return str(connection.as_uri())
        except ValueError:
            # Its message would show a part of the password.
            raise SettingsError(
                "ROWCALL_BROKER_URL is not a URL: in its user and password, write / as %2F, @ as %40, and so on"
            ) from None
        except Exception as error:
            raise SettingsError(
                f"ROWCALL_BROKER_URL cannot be used: {type(error).__name__}: {message_of(error)}; some brokers need a"
                " package of their own, such as pip install 'kombu[redis]'"
            ) from error

    def _connection(self) -> Any:
        from kombu.connection import Connection

        connection: Any = Connection(self._url, connect_timeout=ANSWER_SECONDS)  # type: ignore[no-untyped-call]
        connection.transport_options.update(_options(connection.transport.driver_type))
        return connection

    @property
    def opens_in(self) -> float:
        """The seconds until the first of the pauses ends; infinite if there is none."""
        return min((left for pause in self._pauses.values() if (left := pause.left)), default=inf)

    @staticmethod
    def _open(connection: Any) -> None:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=ANSWER_SECONDS)

    @property
    def queues(self) -> Sequence[str]:
        """The broker's queues that get messages."""
        return sorted(self._pauses)

    def consumers(self) -> Mapping[str, int | None] | None:
        """Return how many consumers each of them has, None for one that does not exist; raise if the broker is away.

        Only RabbitMQ is asked; for Redis and SQS, which take messages for a queue of any name, return None.
        """
        connection = self._connection()
        try:
            self._open(connection)
            if connection.transport.driver_type != "amqp":
                return None
            return {queue: _consumers(connection, queue) for queue in self.queues}
        finally:
            connection.collect(socket_timeout=0.1)

    def open(self) -> Mapping[str, float]:
        """Return the leases of the job types that may be claimed now: all except those whose queue has a pause."""
        paused = {queue for queue, pause in self._pauses.items() if pause.left}
        if not paused:
            return self._leases
        handovers = self.handovers
        return {
            name: lease
            for name, lease in self._leases.items()
            if name not in handovers or handovers[name].queue not in paused
        }

    def attempt(self, run: InFlightRun) -> AttemptResult:
        """Publish the message of a claimed run, in place of a handler."""
        handover = self.handovers[run.claimed.job_type]
        pause = self._pauses[handover.queue]
        if run.lost or elapsed() > run.deadline:
            return AttemptResult.of_error(LeaseLost(run.lease.run_id, run.lease.lease_no))
        try:
            if not pause.left:
                self._publish(run.claimed, handover)
                pause.end()
                return AttemptResult(holder=holder_of(handover.queue, handover.task))
        except Exception as error:
            self._close()
            pause.begin(_why(error))
        reason = f"the broker {self.broker} has not taken a message for queue {handover.queue}: {pause.why}"
        return AttemptResult.of_error(NotHandedOver(reason))

    def _publish(self, claimed: Claimed, handover: Handover) -> None:
        message = message_for(claimed, handover.task, f"rowcall@{socket.gethostname()}")
        # To the queue itself, which must exist: declaring it here could contradict the app's own declaration.  When the
        # lease is over, the message is useless, and the broker may drop it.
        self._producer().publish(
            message.body,
            headers=message.headers,
            correlation_id=message.correlation_id,
            exchange="",
            routing_key=handover.queue,
            mandatory=True,
            expiration=handover.wait,
            serializer="json",
            timeout=ANSWER_SECONDS,
            confirm_timeout=ANSWER_SECONDS,
        )
        self._of_thread.used_at = elapsed()

    def _producer(self) -> Any:
        """Return this thread's producer, with a connection that can still be trusted."""
        kept = getattr(self._of_thread, "producer", None)
        if kept is not None and elapsed() < self._of_thread.used_at + IDLE_SECONDS:
            return kept
        self._close()
        self._of_thread.connection = connection = self._connection()
        self._open(connection)
        # A channel of its own: to open the default one, kombu would wait for a broker for ever.
        self._of_thread.producer = producer = connection.Producer(connection.channel(), auto_declare=False)
        return producer

    def _close(self) -> None:
        """Drop this thread's connection; the next message opens another one."""
        connection = getattr(self._of_thread, "connection", None)
        self._of_thread.connection = self._of_thread.producer = None
        if connection is not None:
            # Without the polite end of a connection, for which it would wait.
            connection.collect(socket_timeout=0.1)


def _options(driver: str) -> Mapping[str, Any]:
    """Return what this driver of kombu needs so that it confirms messages, and waits for no longer than that."""
    waits = ANSWER_SECONDS
    known: Mapping[str, Mapping[str, Any]] = {
        "amqp": {"confirm_publish": True, "read_timeout": waits, "write_timeout": waits},
        "redis": {"socket_timeout": waits, "socket_connect_timeout": waits},
        # By itself, Amazon's client tries several times and waits for 60 seconds each time.
        "sqs": {"client-config": {"connect_timeout": waits, "read_timeout": waits, "retries": {"max_attempts": 0}}},
    }
    return known.get(driver, {})


def _why(error: Exception) -> str:
    """Say why a broker has not taken a message."""
    if getattr(error, "reply_code", None) == NO_ROUTE:
        return "it has no such queue: start a Celery worker that serves it, or correct the queue in celery(...)"
    return f"{type(error).__name__}: {one_line(message_of(error))}"


def _consumers(connection: Any, queue: str) -> int | None:
    """Return how many consumers a queue of RabbitMQ has, or None if it does not exist, which closes the channel."""
    try:
        found: int = connection.channel().queue_declare(queue, passive=True).consumer_count
    except connection.channel_errors as error:
        if getattr(error, "code", None) != NO_SUCH_QUEUE:
            raise
        return None
    return found


def publisher_for(types: Mapping[str, JobType], leases: Mapping[str, float], settings: Settings) -> Publisher | None:
    """Return the publisher of a worker with these job types, or None if none of them hands over."""
    handovers = {name: job_type.handover for name, job_type in types.items() if job_type.handover is not None}
    if not handovers:
        return None
    if settings.broker_url is None:
        raise SettingsError(
            f"job type {next(iter(handovers))!r} hands its runs over to Celery: set ROWCALL_BROKER_URL, or keep this"
            " worker from its type with --types"
        )
    try:
        return Publisher(settings.broker_url, handovers, leases)
    except SettingsError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and (cause.name or "").partition(".")[0] == "kombu":
            raise SettingsError("a job type hands its runs over: pip install 'rowcall[handover]'") from None
        raise
