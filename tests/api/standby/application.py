"""An application that reads from a standby, and looks at it when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import flask

from rowcall.base.database import PgConnection, fetch_all
from rowcall.base.database.pool import open_pool
from rowcall_api.http.database import attach, transaction
from rowcall_api.standby.requests import STANDBY, standby_may_answer
from rowcall_api.standby.standby import Standby

READ = "SELECT pg_is_in_recovery() AS standbys, count(*) FROM rowcall.job_runs"


class Application:
    """An application with one view, whose standby looks when the test says so."""

    def __init__(self, leader_url: str, standby_url: str) -> None:
        self.app = flask.Flask("tests")
        self.pool = open_pool(leader_url, 2)
        attach(self.app, self.pool)
        self.standby = self.app.extensions[STANDBY] = Standby(leader_url, standby_url, 2)

    def answered_by(self, work: Callable[[PgConnection], object] = lambda _: None) -> str:
        """Make a request that reads and then does this in the same transaction; return which server answered."""

        @standby_may_answer
        def view() -> str:
            with transaction() as connection:
                [row] = fetch_all(connection, READ)
                work(connection)
            return "standby" if row["standbys"] else "leader"

        with self.app.test_request_context():
            return view()

    @contextmanager
    def request(self, work: Callable[[PgConnection], object]) -> Iterator[list[str]]:
        """Make such a request in a thread, during the block; the list then has the server that answered."""
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(self.answered_by(work)))
        thread.start()
        yield answers
        thread.join()


@contextmanager
def application(leader_url: str, standby_url: str) -> Iterator[Application]:
    made = Application(leader_url, standby_url)
    made.standby.look()
    yield made
    made.pool.dispose()


def answers(asked: Application) -> bool:
    """Look once more, and return whether the standby answers; just now, it may have been a little behind."""
    asked.standby.look()
    return asked.standby.away is None
