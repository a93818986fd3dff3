"""The kit: what a test of an app's handlers works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Unpack

from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.base.database import PgConnection, Row
from rowcall.base.errors import DefinitionNotFound, RowcallError
from rowcall.base.settings import Settings
from rowcall.definitions import apply_code
from rowcall.effects import effects_of
from rowcall.job_types import Catalogue, Definition, JobType, builtin, catalogue
from rowcall.job_types.catalogue import app_module
from rowcall.queue import attempts_of, enqueue, get_run, log_end, retry
from rowcall.queue.enqueue import Options
from rowcall.queue.run_log import LINES_MOST
from rowcall.status import Status
from rowcall.testing.log import Lines
from rowcall.testing.runs import all_runs
from rowcall.testing.time import move, move_to, time_now
from rowcall_worker.testing.expectations import complaint, matching, refuse_impossible
from rowcall_worker.testing.gateways import RecordingGateways
from rowcall_worker.testing.performer import Attempted, Performer

# The operator in the audit log.
OPERATOR = Operator("test")

# A test that needs more has a handler that enqueues or snoozes forever.
DRAINED_MOST = 1000

# Larger steps would leave the range of valid times.
FURTHEST = timedelta(days=3650)


@dataclass(frozen=True)
class Performed:
    """A run after an attempt; `exception` is what its handler raised."""

    run_id: int
    job_type: str
    payload: Mapping[str, Any]
    status: Status
    result: Any
    error: str | None
    error_type: str | None
    attempts: int
    failed_attempts: list[Row] = field(repr=False)
    effects: list[Row] = field(repr=False)
    log: list[Row] = field(repr=False)
    row: Row = field(repr=False)
    exception: BaseException | None = field(default=None, repr=False)

    @classmethod
    def read(cls, connection: PgConnection, run_id: int, exception: BaseException | None = None) -> Performed:
        """The current state of the run."""
        row = get_run(connection, run_id)
        return cls(
            run_id,
            row["job_type"],
            row["payload"],
            Status(row["status"]),
            row["result"],
            row["last_error"],
            row["error_type"],
            row["attempts"],
            attempts_of(connection, run_id),
            effects_of(connection, run_id),
            log_end(connection, run_id, LINES_MOST),
            row,
            exception,
        )


class Rowcall:
    """A database of this test, and a worker in this process that does what the test asks for."""

    def __init__(self, settings: Settings, url: str) -> None:
        self.url = url
        self.gateways = RecordingGateways(settings)
        self.log: list[dict[str, Any]] = []
        self.performed: list[Performed] = []
        self._catalogue = catalogue()
        self._performer = Performer(settings, url, self.gateways)
        self._moved = timedelta(0)
        with self.transaction() as connection:
            self._began = time_now(connection)
            assert settings.app is not None, "the fixture checks this"
            own = Catalogue(builtin, app_module(settings.app, "job_types"))
            apply_code(connection, own, OPERATOR)
        self._definitions = sorted(own.definitions)
        self._log_before = logs.log()
        logs.use(logs.Log(Lines(self.log), "debug", "json"))

    def close(self) -> None:
        """End the worker; the fixture does so."""
        self._performer.close()
        logs.use(self._log_before)

    @contextmanager
    def transaction(self) -> Iterator[PgConnection]:
        """A psycopg2 connection to the test's database, committed at the end of the block."""
        with database.transaction(self.url) as connection:
            yield connection

    def enqueue(
        self,
        job_type: str | JobType,
        payload: Mapping[str, Any],
        *,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> int:
        """Enqueue a run in a transaction of its own, and return its id."""
        with self.transaction() as connection:
            return enqueue(connection, job_type, payload, key=key, **options).run_id

    def perform(self, run_id: int | None = None, *, reraise: bool = False) -> Performed:
        """Make one attempt of this run, or of the one that a worker would take next.

        With `reraise`, what the handler raises is raised here too, unless handlers raise it to end an attempt: Retry,
        Permanent, Snooze and gateways' errors.
        """
        if run_id is not None and type(run_id) is not int:
            name = type(run_id).__name__
            raise TypeError(f"perform needs a run's id, such as the run_id of what enqueue returned, not {name}")
        attempted = self._performer.perform_next() if run_id is None else self._performer.perform(run_id)
        if attempted is None:
            raise RowcallError(f"nothing is due; {self._what_there_is()}")
        return self._done(attempted, reraise)

    def retry(self, run_id: int) -> None:
        """Retry a dead run, as `rowcall runs retry` does."""
        with self.transaction() as connection:
            retry(connection, run_id, OPERATOR)

    def drain(self, *, reraise: bool = False) -> list[Performed]:
        """Make attempts until nothing is due, including what they enqueue; return them in order."""
        done: list[Performed] = []
        while (attempted := self._performer.perform_next()) is not None:
            done.append(self._done(attempted, reraise))
            if len(done) >= DRAINED_MOST:
                raise RowcallError(
                    f"{DRAINED_MOST} attempts were made, the limit of drain(): does {done[-1].job_type} enqueue itself,"
                    " or try again without a pause?"
                )
        return done

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass for runs, leases and effects; schedules stand still, so that no test depends on the date."""
        by = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by <= timedelta(0):
            raise ValueError(f"time only goes forward: advance was given {by.total_seconds():g} seconds")
        if by > FURTHEST:
            raise ValueError(f"advance was given {by.days} days; it moves at most {FURTHEST.days} days at a time")
        with self.transaction() as connection:
            move(connection, by)
        self._moved += by

    def advance_to(self, definition: str | Definition) -> int:
        """Let time pass until the next run of this definition's schedule is due, and return the run's id."""
        name = definition if isinstance(definition, str) else str(getattr(definition, "name", definition))
        try:
            with self.transaction() as connection:
                run_id, by = move_to(connection, self._catalogue, name, self._began, self._moved)
        except DefinitionNotFound:
            declared = ", ".join(self._definitions) or "none"
            raise RowcallError(f"there is no definition {name!r}; your job_types declare {declared}") from None
        self._moved += by
        return run_id

    def run(self, run_id: int) -> Performed:
        """The current state of the run."""
        with self.transaction() as connection:
            return Performed.read(connection, run_id)

    def assert_enqueued(
        self, job_type: str | JobType, payload: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> int:
        """Assert that one run of this type, with these fields and key, was enqueued in this test; return its id."""
        __tracebackhide__ = True  # pytest shows the line of the test
        runs, name = self._runs(), self._known(job_type, payload, key)
        found = matching(runs, name, payload, key)
        if len(found) != 1:
            raise AssertionError(complaint(runs, found, "one run", name, payload, key))
        run_id: int = found[0]["id"]
        return run_id

    def assert_none_enqueued(
        self, job_type: str | JobType, payload: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> None:
        """Assert that no run of this type was enqueued in this test, with these fields and key."""
        __tracebackhide__ = True  # pytest shows the line of the test
        runs, name = self._runs(), self._known(job_type, payload, key)
        found = matching(runs, name, payload, key)
        if found:
            raise AssertionError(complaint(runs, found, "no run", name, payload, key))

    def _known(self, job_type: str | JobType, payload: Mapping[str, Any] | None, key: str | None) -> str:
        """The name of a declared type; refuses an expectation that none of its runs can meet."""
        declared = self._catalogue[job_type if isinstance(job_type, str) else job_type.name]
        refuse_impossible(declared, payload, key)
        return declared.name

    def _runs(self) -> list[Row]:
        with self.transaction() as connection:
            return all_runs(connection)

    def _done(self, attempted: Attempted, reraise: bool) -> Performed:
        with self.transaction() as connection:
            done = Performed.read(connection, attempted.claimed.run_id, attempted.exception)
        self.performed.append(done)
        if reraise and attempted.unexpected is not None:
            raise attempted.unexpected
        return done

    def _what_there_is(self) -> str:
        waiting = [run for run in self._runs() if run["finished_at"] is None]
        if not waiting:
            return "no run is waiting: enqueue one, and commit"
        return "waiting: " + ", ".join(f"run {run['id']} {run['job_type']} (due {run['run_at']})" for run in waiting)
