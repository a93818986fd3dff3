"""Waits for a synchronous standby are cancelled: no commit is confirmed that may be lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from werkzeug.test import TestResponse

from rowcall import enqueue
from rowcall.access import api_keys
from rowcall.access.audit import Operator
from rowcall.base import database, logs
from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.errors import CommitUnconfirmed
from rowcall.base.watched import Answers, InternalConnection, WatchedConnection
from rowcall.effects import KINDS, Effect
from rowcall.queue import Lease
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_migrations.migrate import migrate
from rowcall_worker.attempt.connections import Connections
from rowcall_worker.attempt.effects import perform_once
from tests.support.processes import rowcall
from tests.support.rows import WORKER, run_in
from tests.support.server import own_server

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
CANCEL = f"SELECT pg_cancel_backend(pid) FROM ({WAITING}) AS waiting"


class Primary:
    """A server whose commits wait for a standby that does not exist, within `waiting`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cancelled = 0
        self._connection = database.connect(url)
        self._connection.autocommit = True

    def sql(self, statement: str) -> list[database.Row]:
        return fetch_all(self._connection, statement)

    def need_standby(self, name: str) -> None:
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        self.sql("SELECT pg_reload_conf()")

    @contextmanager
    def waiting(self, cancels: int | None = None) -> Iterator[None]:
        """Let commits wait and cancel their waits: all, or this many before the standby is no longer required."""
        self.cancelled = 0
        self.need_standby("nobody")
        self._wait_until_needed()
        ended = threading.Event()

        def cancel() -> None:
            while not ended.wait(0.01):
                self.cancelled += len(self.sql(CANCEL))
                if self.cancelled == cancels:
                    self.need_standby("")

        cancelling = threading.Thread(target=cancel)
        cancelling.start()
        try:
            yield
        finally:
            ended.set()
            cancelling.join()
            self.need_standby("")

    def _wait_until_needed(self) -> None:
        """Commit until a commit waits, because the server takes some time to reload its configuration."""
        with closing(database.connect(self.url)) as probe:
            while not probe.notices:
                fetch_all(probe, "SET client_min_messages = warning; SELECT pg_logical_emit_message(true, 'probe', '')")
                committing = threading.Thread(target=probe.commit)
                committing.start()
                while committing.is_alive():
                    self.sql(CANCEL)
                    committing.join(0.01)


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Primary]:
    with own_server(tmp_path_factory.mktemp("primary")) as server:
        migrate(server.url, lock_timeout=3)
        yield Primary(server.url)


@pytest.fixture(scope="module")
def ask(primary: Primary) -> Iterator[Callable[[str], TestResponse]]:
    with database.transaction(primary.url) as connection:
        key = api_keys.create_key(connection, "test", ["admin"], Operator("tests"))
    app = create_app(primary.url)

    def asked(idempotency_key: str) -> TestResponse:
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": idempotency_key}
        return app.test_client().post("/v1/runs", json={"job_type": "noop"}, headers=headers)

    yield asked
    app.extensions["database"].dispose()
    logs.use(logs.Log())


def test_a_commit_whose_wait_for_the_standby_was_cancelled_is_not_confirmed(primary: Primary) -> None:
    with primary.waiting(), pytest.raises(CommitUnconfirmed), database.internal_transaction(primary.url) as connection:
        enqueue(connection, "noop", {})


@pytest.mark.parametrize("factory", [InternalConnection, WatchedConnection])
def test_a_role_that_hides_warnings_hides_none_of_these(primary: Primary, factory: type[PgConnection]) -> None:
    [name] = primary.sql("SELECT current_user AS role")
    primary.sql(f"ALTER ROLE {name['role']} SET client_min_messages = error")
    with primary.waiting(), pytest.raises(CommitUnconfirmed), database.transaction(primary.url, factory) as connection:
        enqueue(connection, "noop", {})
    primary.sql(f"ALTER ROLE {name['role']} RESET client_min_messages")


def test_the_api_acknowledges_neither_a_new_run_nor_a_replay_that_may_be_lost(
    primary: Primary, ask: Callable[[str], TestResponse]
) -> None:
    assert ask("warm").status_code == 202
    with primary.waiting():
        for _ in range(2):
            answer = ask("once")
            assert answer.status_code == 503
            assert answer.json is not None
            assert answer.json["type"] == "urn:rowcall:problem:commit-unconfirmed"
            assert "repeat the request, with the same" in answer.json["detail"]
            assert answer.headers["Retry-After"]
    repeated = ask("once")
    assert (repeated.status_code, repeated.headers["Idempotent-Replayed"]) == (200, "true")


def test_a_read_has_nothing_to_confirm(primary: Primary) -> None:
    with database.transaction(primary.url) as connection:
        key = api_keys.create_key(connection, "reads", ["read"], Operator("tests"))
        run_id = enqueue(connection, "noop", {}).run_id
    app = create_app(primary.url)
    run = f"runs/{run_id}"
    with primary.waiting():
        for path in ("runs", "runs?count=true", run, f"{run}/explain", f"{run}/effects", "stats", "effects"):
            answer = app.test_client().get(f"/v1/{path}", headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 200, path
    assert primary.cancelled > 0  # explain locks the run for a moment
    app.extensions["database"].dispose()
    logs.use(logs.Log())


def test_a_command_says_so_and_fails(primary: Primary) -> None:
    environment = {**os.environ, "DATABASE_URL": primary.url}
    with primary.waiting():
        done = rowcall(environment, "enqueue", "noop", "{}")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the commit is not confirmed" in done.stderr


def test_an_effect_is_performed_only_when_its_intent_is_confirmed_and_then_once(primary: Primary) -> None:
    with database.transaction(primary.url) as connection:
        run = run_in(connection, Status.RUNNING)
    lease = Lease(WORKER, run["id"], run["lease_no"])
    connections, cancelled_before = Connections(primary.url, Answers()), list[int]()

    def send(_: Effect) -> str:
        cancelled_before.append(primary.cancelled)
        return "250 queued"

    with primary.waiting(cancels=2):
        effect = perform_once(
            lease,
            connections.internal_transaction,
            connections.internal_statement,
            lambda: None,
            KINDS["sent_emails"],
            {"idempotency_key": "welcome:1"},
            {"subject": "Hello"},
            send,
            horizon=60,
        )
    assert (effect.state, cancelled_before) == ("applied", [2])


def test_an_effects_record_that_is_not_confirmed_is_made_again(primary: Primary) -> None:
    with database.transaction(primary.url) as connection:
        run = run_in(connection, Status.RUNNING)
    connections, sent = Connections(primary.url, Answers()), list[Effect]()
    waiting = primary.waiting(cancels=2)

    def send(effect: Effect) -> str:
        sent.append(effect)
        waiting.__enter__()
        return "250 queued"

    try:
        effect = perform_once(
            Lease(WORKER, run["id"], run["lease_no"]),
            connections.internal_transaction,
            connections.internal_statement,
            lambda: None,
            KINDS["sent_emails"],
            {"idempotency_key": "welcome:2"},
            {"subject": "Hello"},
            send,
            horizon=60,
        )
    finally:
        waiting.__exit__(None, None, None)
    assert (effect.state, len(sent), primary.cancelled) == ("applied", 1, 2)


WARNS = """
CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''noticed''; RETURN NEW; END';
CREATE TRIGGER warns BEFORE INSERT OR UPDATE ON rowcall.sent_emails FOR EACH ROW EXECUTE FUNCTION public.warn()
"""


def test_a_warning_of_a_statement_leaves_its_commit_confirmed(fresh_url: str) -> None:
    with database.transaction(fresh_url) as connection:
        fetch_all(connection, WARNS)
        run = run_in(connection, Status.RUNNING)
    connections = Connections(fresh_url, Answers())
    checks: list[None] = []

    def check_lease() -> None:
        """Fail when a further try begins: the lease is checked once before `perform`, and before each of those."""
        checks.append(None)
        assert len(checks) == 1

    effect = perform_once(
        Lease(WORKER, run["id"], run["lease_no"]),
        connections.internal_transaction,
        connections.internal_statement,
        check_lease,
        KINDS["sent_emails"],
        {"idempotency_key": "welcome:1"},
        {"subject": "Hello"},
        lambda _: "250 queued",
        horizon=60,
    )
    assert effect.state == "applied"
