"""The fixtures, and what pytest shows of a test that fails."""

from __future__ import annotations

import traceback
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from rowcall.base import settings
from rowcall.base.errors import RowcallError
from rowcall.job_types import catalogue
from rowcall.testing.databases import Databases
from rowcall.testing.server import server_url
from rowcall_worker.testing.kit import Rowcall

KIT = pytest.StashKey[Rowcall]()

NO_APP = (
    "tests need your app: set ROWCALL_APP to the package with your job_types and handlers, or write"
    " `rowcall_app = PACKAGE` into pytest's configuration"
)

# Imported by name, as by the command line, because the worker and the migrations never import each other.
MIGRATE = "rowcall_migrations.migrate:migrate"

# The folders of Rowcall's code, whose frames do not help in understanding what it refuses.
OWN_FOLDERS = (Path(settings.__file__).parents[2], Path(__file__).parents[1])

# Locks are held only briefly, because no other process uses a database that is being created.
LOCK_SECONDS = 3.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """`rowcall_app = shop` in pytest's configuration stands for ROWCALL_APP=shop."""
    parser.addini("rowcall_app", "The package with your job types and handlers, in place of ROWCALL_APP.", default="")


@pytest.fixture(scope="session")
def rowcall_schema() -> Callable[[str], None]:
    """Override this to add your own tables to the template: return a function that gets the database's URL."""
    return _nothing_more


def _nothing_more(url: str) -> None:
    """The default for apps without tables."""


@pytest.fixture(scope="session")
def rowcall_app(pytestconfig: pytest.Config) -> Iterator[str]:
    """The app under test."""
    with pytest.MonkeyPatch.context() as patch:
        if own := str(pytestconfig.getini("rowcall_app")):
            patch.setenv("ROWCALL_APP", own)
        catalogue.cache_clear()
        with _sentences():
            app = settings.read().app
            catalogue()
        if app is None:
            pytest.fail(NO_APP, pytrace=False)
        yield app
    catalogue.cache_clear()


@pytest.fixture(scope="session")
def rowcall_databases(
    pytestconfig: pytest.Config, rowcall_schema: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    """The databases of this session, beside the one of DATABASE_URL or on a server of the session."""
    # What pytest-xdist tells each of its processes.
    session = getattr(pytestconfig, "workerinput", {}).get("testrunuid")
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if session else base) / "rowcall"

    def fill(url: str) -> None:
        resolve_name(MIGRATE)(url, lock_timeout=LOCK_SECONDS)
        rowcall_schema(url)

    with _sentences(), server_url(settings.read(), home) as url:
        databases = Databases(url, session or uuid.uuid4().hex)
        try:
            databases.make_template(fill)
            yield databases
        finally:
            databases.close()


@contextmanager
def _sentences() -> Iterator[None]:
    """Show an error of Rowcall's own as its sentence, without a traceback."""
    try:
        yield
    except RowcallError as error:
        sentence = str(error)
    else:
        return
    # Not `pytest.fail`: the error that this replaces would be shown too.
    raise pytest.fail.Exception(sentence, pytrace=False) from None


@pytest.fixture
def rowcall(
    rowcall_app: str,
    rowcall_databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Rowcall]:
    """A database of this test, and a worker in this process that does what the test asks for."""
    url = rowcall_databases.copy()
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("ROWCALL_HOME", str(tmp_path / "rowcall"))
    try:
        with _sentences():
            kit = Rowcall(settings.read(), url)
        request.node.stash[KIT] = kit
        yield kit
        kit.close()
        for error in kit.gateways.unused:
            pytest.fail(f"fail_next was given {error!r}, but that gateway was not called afterwards", pytrace=False)
    finally:
        rowcall_databases.drop_copies()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Show with a test that fails what its handlers raised and what was logged."""
    if call.when == "call" and call.excinfo is not None:
        _end_at_the_tests_line(call.excinfo.value)
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    kit = item.stash.get(KIT, None)
    if kit is None or not report.failed or report.when != "call":
        return
    for done in kit.performed:
        if done.exception is not None and not _is_shown(done.exception, call):
            told = f"run {done.run_id} of {done.job_type} is {done.status}: its handler raised"
            report.sections.append((told, "".join(traceback.format_exception(done.exception))))
    if kit.log:
        report.sections.append(("Rowcall's log", "\n".join(map(_line, kit.log))))


def _end_at_the_tests_line(error: BaseException) -> None:
    """Cut the traceback after the app's last line if Rowcall has refused what it was given."""
    if not isinstance(error, RowcallError):
        return
    frame, last = error.__traceback__, None
    while frame is not None:
        if not any(folder in Path(frame.tb_frame.f_code.co_filename).parents for folder in OWN_FOLDERS):
            last = frame
        frame = frame.tb_next
    if last is not None:
        last.tb_next = None


def _is_shown(exception: BaseException, call: pytest.CallInfo[None]) -> bool:
    """Whether this exception, with its traceback, is what ended the test."""
    return call.excinfo is not None and call.excinfo.value is exception


def _line(logged: dict[str, Any]) -> str:
    fields = {name: value for name, value in logged.items() if name not in ("timestamp", "level", "event")}
    return " ".join([logged["level"], logged["event"], *(f"{name}={value!r}" for name, value in fields.items())])
