"""The database is gone between an effect's answer and its record: the effect is recorded, and not repeated."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from rowcall.base import database
from rowcall.base.database import PgConnection, fetch_all, fetch_one
from rowcall.base.errors import AmbiguousEffect, LeaseLost, Unavailable
from rowcall.effects import KINDS, Effect
from rowcall.queue import Lease
from rowcall.status import Status
from rowcall_migrations.migrate import migrate
from rowcall_worker.attempt.effects import Answer, Perform, perform_once
from tests.support.logged import logged
from tests.support.rows import WORKER, run_in
from tests.support.server import OwnServer, own_server

MAIL = KINDS["sent_emails"]


class Attempt:
    """An attempt on a server that a test can stop."""

    def __init__(self, server: OwnServer) -> None:
        self.server = server
        self.tried_in_vain = threading.Event()
        with database.transaction(server.url) as connection:
            run = run_in(connection, Status.RUNNING)
        self.lease = Lease(WORKER, run["id"], run["lease_no"])
        self.lost = False

    @contextmanager
    def transaction(self) -> Iterator[PgConnection]:
        try:
            with database.internal_transaction(self.server.url) as connection:
                yield connection
        except Exception:
            self.tried_in_vain.set()
            raise

    def check_lease(self) -> None:
        if self.lost:
            raise LeaseLost(self.lease.run_id, self.lease.lease_no)

    def mail(self, perform: Perform) -> Effect:
        key = {"idempotency_key": f"welcome:{self.lease.run_id}"}
        return perform_once(
            self.lease,
            self.transaction,
            self.transaction,
            self.check_lease,
            MAIL,
            key,
            {"subject": "Hello"},
            perform,
            horizon=60,
        )

    def mail_through_an_outage(self, perform: Perform) -> Future[Effect]:
        """Stop the server before the email is answered; start it again after the attempt has failed to record that."""
        answering, gone = threading.Event(), threading.Event()

        def answered(effect: Effect) -> Answer:
            answering.set()
            gone.wait()
            return perform(effect)

        # The server's processes end with the thread that started them, so the attempt gets another thread.
        with ThreadPoolExecutor(1) as thread:
            mailing = thread.submit(self.mail, answered)
            answering.wait()
            self.server.kill(signal.SIGQUIT)
            gone.set()
            self.tried_in_vain.wait()
            self.server.start()
        return mailing

    def stored(self) -> dict[str, object]:
        with database.transaction(self.server.url) as connection:
            row = fetch_one(connection, "SELECT * FROM rowcall.sent_emails ORDER BY id DESC LIMIT 1")
        assert row is not None
        return row


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    folder: Path = tmp_path_factory.mktemp("server")
    with own_server(folder) as server:
        migrate(server.url, lock_timeout=3)
        yield server


@pytest.fixture
def attempt(server: OwnServer) -> Attempt:
    return Attempt(server)


def test_a_mail_that_was_sent_is_recorded_when_the_database_is_back_and_not_sent_again(attempt: Attempt) -> None:
    sent: list[Effect] = []

    def send(effect: Effect) -> str:
        sent.append(effect)
        return "250 queued as 7"

    effect = attempt.mail_through_an_outage(send).result()
    assert (effect.state, effect.reference, len(sent)) == ("applied", "250 queued as 7", 1)
    assert (attempt.stored()["state"], attempt.stored()["provider_reference"]) == ("applied", "250 queued as 7")


def test_a_mail_that_was_refused_is_recorded_when_the_database_is_back(attempt: Attempt) -> None:
    def refuse(_: Effect) -> str:
        raise Unavailable("the server is busy")

    with pytest.raises(Unavailable):
        attempt.mail_through_an_outage(refuse).result()
    assert attempt.stored()["state"] == "refused"


def test_a_record_whose_commit_was_not_heard_of_is_made_again(attempt: Attempt) -> None:
    sent: list[Effect] = []

    def send(effect: Effect) -> str:
        sent.append(effect)
        with attempt.transaction() as connection:
            applied = "UPDATE rowcall.sent_emails SET state = 'applied', applied_at = now() WHERE id = %(id)s"
            fetch_all(connection, applied, {"id": effect.id})
        return "250 queued"

    assert attempt.mail(send).reference == "250 queued"
    assert len(sent) == 1


def test_at_the_end_of_the_lease_the_operator_is_told_the_reference(attempt: Attempt) -> None:
    def send(_: Effect) -> str:
        attempt.lost = True
        attempt.server.kill(signal.SIGQUIT)
        return "250 queued as 8"

    with (
        logged() as lines,
        pytest.raises(AmbiguousEffect, match="it happened, with the reference '250 queued as 8'"),
    ):
        attempt.mail(send)
    attempt.server.start()
    assert [line["reference"] for line in lines] == ["250 queued as 8"]
