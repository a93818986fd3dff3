"""A leader, a standby that follows it, and the application that reads from it."""

from __future__ import annotations

from collections.abc import Iterator

import flask
import pytest

from rowcall.base import logs
from rowcall_api.app import create_app
from rowcall_migrations.grants import as_grants
from tests.api.conftest import Call, told
from tests.api.standby.application import Application, answers, application
from tests.support.connections import disconnect
from tests.support.processes import wait_until
from tests.support.psql import psql
from tests.support.roles import role
from tests.support.standby import Leader, StandbyServer, leader


@pytest.fixture(scope="module")
def ahead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leader]:
    """Yield the leader of this module."""
    with leader(tmp_path_factory.mktemp("leader")) as made:
        yield made


@pytest.fixture(scope="module")
def behind(ahead: Leader) -> Iterator[StandbyServer]:
    """Yield the standby of this module."""
    with ahead.standby() as made:
        yield made


@pytest.fixture(scope="module")
def module_url(ahead: Leader) -> str:
    """Return the leader's URL, for the fixtures that need a database."""
    return ahead.url


@pytest.fixture(scope="module")
def app(ahead: Leader, behind: StandbyServer) -> Iterator[flask.Flask]:
    """Yield the application, which reads from the standby, and has only the rights of the API's role on both."""
    psql(ahead.url, as_grants([]))
    with role(ahead.url, "api", "rowcall_api") as ours:
        behind.catch_up()
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("ROWCALL_RATE_LIMIT", "0")
            environment.setenv("ROWCALL_READ_URL", behind.instead_of(ours.url))
            app = create_app(ours.url)
        yield app
        disconnect(app)
    logs.use(logs.Log())


@pytest.fixture
def answering(call: Call) -> None:
    """Wait until the standby answers."""
    wait_until(lambda: state(call) == "answers", "the standby answers")


def state(call: Call) -> str:
    """Return what /readyz says about the standby; the API is in service in any case."""
    answer = call("GET", "/readyz")
    assert answer.status_code == 200
    return str(told(answer)["standby"])


@pytest.fixture
def asked(ahead: Leader, behind: StandbyServer) -> Iterator[Application]:
    """Yield an application whose standby answers."""
    with application(ahead.url, behind.url) as made:
        wait_until(lambda: answers(made), "the standby answers")
        yield made
