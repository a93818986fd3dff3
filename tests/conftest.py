"""A real PostgreSQL for all tests: one server a session, one database a module, made from a migrated template."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.job_types import catalogue
from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_migrations.migrate import migrate
from tests.support.pooler import pgbouncer
from tests.support.superuser import let_do_all

TEMPLATE = "rowcall_template"

# Nobody's own settings may reach a test, least of all the URL of a database that matters.
CHOOSES_PROGRAMS = "ROWCALL_POSTGRES"
SOURCE = os.environ.get(CHOOSES_PROGRAMS, "auto")
for variable in [name for name in os.environ if name == "DATABASE_URL" or name.startswith("ROWCALL_")]:
    del os.environ[variable]

# Tests start hundreds of processes.  Each would compile all of Rowcall again where somebody wants no bytecode written.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Who runs tests in the background may ignore these, and every process that they start would inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)

# Programs of Debian that some tests need, where they may lie besides the PATH.
PROGRAM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"

# What Hypothesis draws is the same each time, so that a test fails because of a change and not by chance; new examples
# are looked for with --hypothesis-profile=search.  A database answers when it can.
settings.register_profile(
    "rowcall",
    derandomize=True,
    max_examples=200,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
    print_blob=True,
)
settings.register_profile("search", settings.get_profile("rowcall"), derandomize=False, max_examples=5_000)
# Whether it fails is all that is asked of it: the failing example need not be made smaller.
settings.register_profile("mutants", settings.get_profile("rowcall"), phases=[Phase.generate])
settings.load_profile("rowcall")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make check` runs the whole suite; `make test` what needs no network and no program that is not here."""
    parser.addoption("--whole", action="store_true", help="also tests that need the package index or a missing program")
    parser.addoption("--home", type=Path, help="use the server of this home, with those who use it already")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one more than there are cores, because a test that waits leaves its core to another one's."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --whole, leave out what cannot run here, and say so in pytest's closing line as deselected."""
    if config.getoption("--whole"):
        return
    left_out = [item for item in items if _cannot_run(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _cannot_run(item: pytest.Item) -> bool:
    programs = [mark.args[0] for mark in item.iter_markers("program")]
    missing = [program for program in programs if shutil.which(program, path=PROGRAM_PATH) is None]
    return bool(missing) or item.get_closest_marker("network") is not None


@pytest.fixture(scope="session")
def server_url(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The maintenance database of the session's server, which all xdist workers share."""
    base = tmp_path_factory.getbasetemp()
    home = pytestconfig.getoption("--home") or (base if worker_id == "master" else base.parent) / "rowcall"
    with open_server(home, SOURCE, options=UNSAFE_AND_FAST) as server:
        yield let_do_all(home, server.url)


@pytest.fixture(scope="session")
def template(server_url: str) -> str:
    """A migrated database to copy; whichever worker comes first makes it."""
    connection = database.connect(server_url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(1)")
        cursor.execute("SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)", (TEMPLATE,))
        if cursor.fetchone() == (False,):
            cursor.execute(f"CREATE DATABASE {TEMPLATE}_new")
            migrate(sibling(server_url, f"{TEMPLATE}_new"), lock_timeout=3)
            cursor.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}")
    connection.close()
    return TEMPLATE


@pytest.fixture(scope="module")
def module_url(server_url: str, template: str) -> Iterator[str]:
    """This module's own database, with the schema and no rows."""
    yield from _database(server_url, template)


@pytest.fixture
def empty_url(server_url: str) -> Iterator[str]:
    """A database of this test's own, with nothing in it."""
    yield from _database(server_url, "template1")


@pytest.fixture
def fresh_url(server_url: str, template: str) -> Iterator[str]:
    """A database of this test's own, with the schema and no rows."""
    yield from _database(server_url, template)


@pytest.fixture(params=["direct", pytest.param("pooled", marks=pytest.mark.program("pgbouncer"))])
def worker_url(request: pytest.FixtureRequest, fresh_url: str, tmp_path: Path) -> Iterator[str]:
    """The same as workers reach it: directly, and through a pooler that gives each transaction another connection."""
    if request.param == "direct":
        yield fresh_url
    else:
        with pgbouncer(fresh_url, "transaction", tmp_path) as url:
            yield url


@pytest.fixture
def connection(module_url: str) -> Iterator[PgConnection]:
    """A connection whose transaction is rolled back after the test."""
    connection = database.connect(module_url)
    yield connection
    connection.rollback()
    connection.close()


@pytest.fixture(scope="module")
def example_app() -> Iterator[None]:
    """The example is this module's app, in this process and in those that it starts; other modules have no app."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWCALL_APP", "rowcall_example")
        catalogue.cache_clear()
        yield
    catalogue.cache_clear()


@pytest.fixture
def environment(module_url: str, tmp_path: Path) -> dict[str, str]:
    """The environment of a `rowcall` process on this module's database."""
    return {**os.environ, "DATABASE_URL": module_url, "ROWCALL_HOME": str(tmp_path / "home")}


def _database(server_url: str, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    _command(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield sibling(server_url, name)
    _command(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def _command(server_url: str, sql: str) -> None:
    connection = database.connect(server_url)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
    finally:
        connection.close()


def sibling(url: str, name: str) -> str:
    """The URL of another database on the same server."""
    return url.rsplit("/", 1)[0] + "/" + name
