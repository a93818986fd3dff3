"""A real PostgreSQL for all tests: one server per session, and a copy of a migrated database per module."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.job_types import catalogue
from rowcall.local_postgres.server import open_server
from rowcall.testing.server import UNSAFE_AND_FAST
from rowcall_migrations.migrate import migrate
from tests.support.kept_connection import KeptConnection
from tests.support.pooler import pgbouncer
from tests.support.superuser import let_do_all

TEMPLATE = "rowcall_template"

# Tests must not see the developer's settings, least of all the URL of a real database.
CHOOSES_PROGRAMS = "ROWCALL_POSTGRES"
SOURCE = os.environ.get(CHOOSES_PROGRAMS, "auto")
for variable in [name for name in os.environ if name == "DATABASE_URL" or name.startswith("ROWCALL_")]:
    del os.environ[variable]

# Tests start hundreds of processes.  Without bytecode files, each of them would compile all of Rowcall again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell may ignore these signals for background jobs, and every process that the tests start would inherit that.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)

# Some tests need Debian programs that may be outside the PATH.
PROGRAM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"

# A file system in memory, as Linux has it, and the room that the whole suite needs there.
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a private folder in it
MEMORY_BYTES = 4 * 2**30

# Hypothesis draws the same examples each time, so that a failure is caused by a change;
# `--hypothesis-profile=search` looks for new ones.  There is no deadline, because a database's response time varies.
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
# A mutant's test only has to fail, so Hypothesis need not shrink the example.
settings.register_profile("mutants", settings.get_profile("rowcall"), phases=[Phase.generate])
settings.load_profile("rowcall")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make check` runs the whole suite; `make test` skips tests that need the network or a missing program."""
    parser.addoption(
        "--whole", action="store_true", help="also run tests that need the package index or a missing program"
    )
    parser.addoption("--home", type=Path, help="use the server of this home, which others may also use")


def pytest_configure() -> None:
    """Keep the tests' folders in memory if there is room: copies of databases are most of what the suite writes."""
    variable = "PYTEST_DEBUG_TEMPROOT"
    if variable not in os.environ and _has_room(MEMORY):
        os.environ[variable] = str(MEMORY)


def _has_room(folder: Path) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    available = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
    free = min(system.f_bavail * system.f_frsize, int(available[1]) * 1024 if available else 0)
    # Some tests run programs that they have installed there.
    return free >= MEMORY_BYTES and not system.f_flag & os.ST_NOEXEC


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start one more worker than there are cores, because tests that wait leave their core idle."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --whole, deselect the tests that cannot run here; pytest's last line counts them."""
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
    """Yield the URL of the maintenance database of the session's server, which all xdist workers share."""
    base = tmp_path_factory.getbasetemp()
    home = pytestconfig.getoption("--home") or (base if worker_id == "master" else base.parent) / "rowcall"
    with open_server(home, SOURCE, options=UNSAFE_AND_FAST) as server:
        yield let_do_all(home, server.url)


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> str:
    """Return the cache of all strict type checks: most of the time of a check is spent on the libraries."""
    base = tmp_path_factory.getbasetemp()
    return f"--cache-dir={(base if worker_id == 'master' else base.parent) / 'mypy'}"


@pytest.fixture(scope="session")
def administration(server_url: str) -> Iterator[PgConnection]:
    """Yield a connection to the maintenance database, to create and drop the others."""
    connection = database.connect(server_url)
    connection.autocommit = True
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def template(administration: PgConnection, server_url: str) -> str:
    """Return the name of a migrated database to copy; the first xdist worker creates it."""
    with administration.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(1)")
        cursor.execute("SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)", (TEMPLATE,))
        if cursor.fetchone() == (False,):
            cursor.execute(f"CREATE DATABASE {TEMPLATE}_new")
            migrate(sibling(server_url, f"{TEMPLATE}_new"), lock_timeout=3)
            cursor.execute(f"ALTER DATABASE {TEMPLATE}_new RENAME TO {TEMPLATE}")
        cursor.execute("SELECT pg_advisory_unlock(1)")
    return TEMPLATE


@pytest.fixture(scope="module")
def module_url(administration: PgConnection, server_url: str, template: str) -> Iterator[str]:
    """Yield the URL of this module's database, which has the schema and no rows."""
    yield from _database(administration, server_url, template)


@pytest.fixture
def empty_url(administration: PgConnection, server_url: str) -> Iterator[str]:
    """Yield the URL of an empty database for this test."""
    yield from _database(administration, server_url, "template1")


@pytest.fixture
def fresh_url(administration: PgConnection, server_url: str, template: str) -> Iterator[str]:
    """Yield the URL of a database for this test, with the schema and no rows."""
    yield from _database(administration, server_url, template)


@pytest.fixture(params=["direct", pytest.param("pooled", marks=pytest.mark.program("pgbouncer"))])
def worker_url(request: pytest.FixtureRequest, fresh_url: str, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of fresh_url's database: direct, or through a pooler in transaction mode."""
    if request.param == "direct":
        yield fresh_url
    else:
        with pgbouncer(fresh_url, "transaction", tmp_path) as url:
            yield url


@pytest.fixture(scope="module")
def kept_connection(module_url: str) -> Iterator[KeptConnection]:
    """Keep this module's connection from test to test."""
    with closing(KeptConnection(module_url)) as kept:
        yield kept


@pytest.fixture
def connection(kept_connection: KeptConnection) -> Iterator[PgConnection]:
    """Yield a connection whose transaction is rolled back after the test."""
    connection = kept_connection.clean()
    yield connection
    connection.rollback()


@pytest.fixture(scope="module")
def example_app() -> Iterator[None]:
    """Make the example this module's app, here and in the processes that the tests start; other modules have no app."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWCALL_APP", "rowcall_example")
        catalogue.cache_clear()
        yield
    catalogue.cache_clear()


@pytest.fixture
def environment(module_url: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a `rowcall` process on this module's database."""
    return {**os.environ, "DATABASE_URL": module_url, "ROWCALL_HOME": str(tmp_path / "home")}


def _database(administration: PgConnection, server_url: str, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    with administration.cursor() as cursor:
        # Copying the files is faster than logging each page; with fsync off, the checkpoint that it needs costs little.
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        yield sibling(server_url, name)
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def sibling(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return url.rsplit("/", 1)[0] + "/" + name
