"""The declaration of a job type: name, payload schema, natural key, and how to run and retry it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, ValidationError

from rowcall.base.errors import DeclarationError, RunInvalid, message_of, raise_if_interrupted
from rowcall.base.receivers import FORM as RECEIVER_FORM
from rowcall.base.receivers import Receiver, unique
from rowcall.job_types.backoff import Backoff, quadratic
from rowcall.job_types.handlers import Declared, declare_handler
from rowcall.job_types.handover import Handover
from rowcall.job_types.payload_fields import at_values, dropped, refuse_mistaken, undeclared
from rowcall.job_types.plain import PlainPayloads
from rowcall.status import UNIQUE_MODES

# MiB.  A child process uses about 50 before its handler does anything.
LEAST_MEMORY_CAP = 64

NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

# The scopes that a job type may require to enqueue its runs.
ENQUEUE_SCOPES = ("enqueue", "operate", "admin")

# The limit for natural keys and idempotency keys.
KEY_CHARACTERS = 255

# The bounds of a run's priority, which is a smallint, and of its attempts.
PRIORITY_FIRST, PRIORITY_LAST = -32768, 32767
ATTEMPTS_MOST = 1000


@dataclass(frozen=True)
class JobType:
    """A job type.  An invalid declaration raises an error that names the type and the field.

    `key` derives the natural key from a payload: two runs with the same key are about the same thing, and `unique` says
    how long one of them excludes the others.  An API key needs the scope `scope` to enqueue a run of the type.

    With `isolated`, each run has a separate child process: the time limit kills the process, a crash costs one attempt,
    and `memory_cap` limits its memory, in MiB, including the interpreter and loaded modules.

    `on_dead` names the receivers of alerts about dead runs of the type, in place of the receivers of all alerts: email
    addresses and URLs.

    With `handover`, a worker only decides when a run begins, and hands it over to the workers of another queue.
    """

    name: str
    schema: type[Schema]
    key: Callable[[Mapping[str, Any]], str] | None = None
    unique: str = "ever"
    scope: str = "enqueue"
    queue: str = "default"
    max_attempts: int = 10
    lease: float | None = None
    time_limit: float | None = None
    max_running: int | None = None
    isolated: bool = False
    memory_cap: int | None = None
    backoff: Backoff = field(default_factory=quadratic)
    on_dead: str | Sequence[str] | None = None
    handover: Handover | None = None

    def __post_init__(self) -> None:
        self._must(
            isinstance(self.name, str) and NAME.fullmatch(self.name),
            "name",
            "lower-case words such as send_mail",
        )
        self._must(
            isinstance(self.schema, type) and issubclass(self.schema, Schema),
            "schema",
            "a marshmallow Schema class",
        )
        self._must_drop_nothing()
        self._must(self.key is None or callable(self.key), "key", "a function that returns a string for a payload")
        self._must(self.scope in ENQUEUE_SCOPES, "scope", f"one of {', '.join(ENQUEUE_SCOPES)}")
        self._must(self.unique in UNIQUE_MODES, "unique", f"one of {', '.join(UNIQUE_MODES)}")
        self._must(
            isinstance(self.queue, str) and NAME.fullmatch(self.queue),
            "queue",
            "lower-case words such as mail",
        )
        self._must(
            _whole(self.max_attempts) and 1 <= self.max_attempts <= ATTEMPTS_MOST,
            "max_attempts",
            f"from 1 to {ATTEMPTS_MOST}",
        )
        self._must(
            self.lease is None or (_number(self.lease) and 1 <= self.lease <= 86400), "lease", "seconds from 1 to 86400"
        )
        self._must(
            self.time_limit is None or (_number(self.time_limit) and 0 < self.time_limit <= 86400),
            "time_limit",
            "seconds up to 86400",
        )
        self._must(
            self.max_running is None or (_whole(self.max_running) and 1 <= self.max_running <= 100_000),
            "max_running",
            "from 1 to 100000, or None for no limit",
        )
        self._must(isinstance(self.isolated, bool), "isolated", "True or False")
        self._must(
            self.memory_cap is None or (_whole(self.memory_cap) and LEAST_MEMORY_CAP <= self.memory_cap <= 2**20),
            "memory_cap",
            f"MiB from {LEAST_MEMORY_CAP} to {2**20}",
        )
        self._must(
            self.memory_cap is None or self.isolated,
            "memory_cap",
            "left out unless isolated is True: only a child process can have a cap",
        )
        self._must(isinstance(self.backoff, Backoff), "backoff", "fixed(...), quadratic(...) or exponential(...)")
        if isinstance(self.on_dead, list):
            object.__setattr__(self, "on_dead", tuple(self.on_dead))  # so that a type is hashable
        self._must(_receivers(self.on_dead) is not None, "on_dead", f"{RECEIVER_FORM}, a list of these, or None")

        self._must(
            self.handover is None or isinstance(self.handover, Handover),
            "handover",
            'celery("shop.tasks.send"), or None to perform runs in the worker',
        )
        self._must(
            not (self.handover and self.isolated),
            "isolated",
            "left out with handover: the processes that perform these runs are Celery's",
        )

    def claimed_seconds(self, default: float) -> float:
        """Return the length of a claim's lease; that of a run to hand over covers its way to a consumer."""
        return (self.lease or default) if self.handover is None else self.handover.wait

    def _must(self, holds: object, name: str, be: str) -> None:
        if not holds:
            raise DeclarationError(f"job type {self.name!r}: {name} is {getattr(self, name)!r} and must be {be}")

    def _must_drop_nothing(self) -> None:
        """Refuse a schema that would load fields without dumping them, because a run would lack these fields."""
        try:
            lost = "; ".join(dropped(self._schema))
        except Exception:  # The first use of the schema reports this, and affects only this type.
            return
        if lost:
            raise DeclarationError(
                f"job type {self.name!r}: its schema would drop fields of the payload ({lost}): remove load_only, and"
                " declare the fields of nested schemas"
            )

    @functools.cached_property
    def _schema(self) -> Schema:
        """The schema's instance; cached, because marshmallow copies all fields for each instance."""
        return self.schema()

    @functools.cached_property
    def _plain(self) -> PlainPayloads | None:
        """The payloads that need no marshmallow; cached, because it depends on the schema only."""
        return PlainPayloads.of(self._schema)

    @functools.cached_property
    def on_dead_receivers(self) -> tuple[Receiver, ...]:
        """The receivers of alerts about dead runs of this type; empty for the receivers of all alerts."""
        return _receivers(self.on_dead) or ()

    def handler(self, function: Declared) -> Declared:
        """Declare the decorated function as the handler of this type; its return value becomes the run's result."""
        declare_handler(self.name, function)
        return function

    def checked(self, payload: object) -> dict[str, Any]:
        """Check the payload against the schema, and return it with defaults and as JSON-compatible data."""
        if not isinstance(payload, Mapping):
            # The value itself could be a person's data, and errors go to logs.
            kind = type(payload).__name__
            raise RunInvalid({"payload": f"must be an object (a dict of names and values), and is of type {kind}"})
        try:
            if self._plain is not None and (completed := self._plain.completed(payload)) is not None:
                return completed
            schema = self._schema
            refuse_mistaken(schema, payload)
            loaded = schema.load(payload)
            stored: dict[str, Any] = {**undeclared(schema, loaded), **schema.dump(loaded)}
        except ValidationError as error:
            raise RunInvalid({"payload": at_values(self._schema, error.messages)}) from None
        except BaseException as error:
            raise self._broken("schema", error) from error
        return stored

    def natural_key(self, payload: Mapping[str, Any]) -> str | None:
        """Return the natural key of this payload, or None if the type has no key."""
        try:
            key = self.key(payload) if self.key else None
        except BaseException as error:
            raise self._broken("key", error) from error
        if self.key and not isinstance(key, str):
            raise DeclarationError(f"job type {self.name!r}: its key returned {key!r} and must return a string")
        return key

    def _broken(self, part: str, error: BaseException) -> DeclarationError:
        """Turn an error of the app's code into a DeclarationError, so that a tick continues with other definitions."""
        raise_if_interrupted(error)
        return DeclarationError(
            f"job type {self.name!r}: its {part} raised {type(error).__name__}: {message_of(error)}"
        )


def _receivers(those: object) -> tuple[Receiver, ...] | None:
    """Parse the receivers of `on_dead`; None if they are invalid."""
    if those is None:
        return ()
    words = [those] if isinstance(those, str) else those
    if not isinstance(words, tuple | list) or not all(isinstance(word, str) for word in words):
        return None
    try:
        return unique(map(Receiver.parse, words))
    except ValueError:
        return None


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
