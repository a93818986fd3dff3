"""rowcall_worker.testing: what pytest shows of tests that fail, and of those that cannot start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowcall.base import database
from tests.support.pooler import pgbouncer
from tests.worker.testing.conftest import bakery_in, environment_for, run_pytest

FAILING = """
import pytest

from rowcall_worker.testing import Unavailable

from .job_types import BAKE, REMIND


def test_a_handler_breaks(rowcall):
    assert rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "badly"})).status == "succeeded"


def test_another_run_is_expected(rowcall):
    rowcall.enqueue(BAKE, {"loaf_id": 7})
    rowcall.enqueue(BAKE, {"loaf_id": 8}, key="order 1")
    rowcall.assert_enqueued(BAKE, {"loaf_id": 9})


def test_two_runs_are_there(rowcall):
    rowcall.enqueue(BAKE, {"loaf_id": 7})
    rowcall.enqueue(BAKE, {"loaf_id": 8})
    rowcall.assert_enqueued(BAKE)


def test_no_run_is_expected(rowcall):
    rowcall.enqueue(BAKE, {"loaf_id": 7})
    rowcall.assert_none_enqueued(BAKE, key="bake:7")


def test_nothing_is_there(rowcall):
    rowcall.assert_enqueued("bakery_remind")


def test_a_type_that_does_not_exist(rowcall):
    rowcall.assert_none_enqueued("bakery_bkae")


def test_a_payload_is_wrong(rowcall):
    rowcall.enqueue(BAKE, {"loaf": 7})


def test_a_payload_is_wrong_in_a_transaction(rowcall):
    with rowcall.transaction() as connection:
        BAKE.enqueue(connection, {"loaf": 7})


def test_a_run_is_not_committed(rowcall):
    with rowcall.transaction() as connection:
        rowcall.perform(BAKE.enqueue(connection, {"loaf_id": 7}).run_id)


def test_a_failure_that_nothing_met(rowcall):
    rowcall.gateways.mail.fail_next(Unavailable("the mail server is down"))


def test_an_error_that_is_raised_again(rowcall):
    rowcall.perform(rowcall.enqueue(BAKE, {"loaf_id": 7, "ends": "badly"}), reraise=True)


def test_the_handler_fails_the_test(rowcall, monkeypatch):
    monkeypatch.setattr("bakery.handlers.REMIND", None)
    monkeypatch.setattr("rowcall_worker.gateways.mail.compose", lambda *_, **__: pytest.fail("said in the handler"))
    rowcall.perform(rowcall.enqueue(REMIND, {"loaf_id": 7}))
"""

# A machine without PostgreSQL's programs.
NOWHERE = """
from rowcall.local_postgres import programs

*others, _ = programs.find_programs.__defaults__
programs.find_programs.__defaults__ = (*others, programs.Places(path="", patterns=(), wheel="not_there"))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory, server_url: str) -> str:
    """Return pytest's output for all of them."""
    folder = bakery_in(tmp_path_factory.mktemp("failing"))
    (folder / "bakery" / "test_failing.py").write_text(FAILING)
    done = run_pytest(folder, environment_for(server_url))
    assert "11 failed, 1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    return done.stdout


def test_a_handlers_traceback_is_shown(said: str) -> None:
    assert "run 1 of bakery_bake is failed: its handler raised" in said
    assert "ValueError: the loaf is burnt" in said
    assert "bakery/handlers.py" in said


def test_what_was_logged_is_shown(said: str) -> None:
    assert "warning run failed error='the loaf is burnt' error_type='ValueError' run_id=1" in said


def test_a_wrong_expectation_lists_what_there_is(said: str) -> None:
    assert 'expected one run of bakery_bake with {"loaf_id": 9}, but found none; there is:' in said
    assert 'run 1 bakery_bake {"ends": "well", "loaf_id": 7} key bake:7 (queued)' in said
    assert 'run 2 bakery_bake {"ends": "well", "loaf_id": 8} key bake:8, order 1 (queued)' in said
    assert "expected one run of bakery_bake, but found 2; there is:" in said
    assert "expected no run of bakery_bake under the key 'bake:7', but found 1; there is:" in said
    assert "expected one run of bakery_remind, but found none; nothing is enqueued" in said
    assert "complaint(" not in said  # pytest shows the test's own line, not ours


def test_what_is_refused_is_shown_at_the_tests_own_line(said: str) -> None:
    for name in ("test_a_payload_is_wrong", "test_a_payload_is_wrong_in_a_transaction", "test_a_type_that_does_not_"):
        shown = re.split("^_+ test_", said.partition(f"_ {name}")[2], maxsplit=1, flags=re.M)[0]
        assert "test_failing.py" in shown
        assert "shared/rowcall" not in shown
        assert "rowcall_worker/testing" not in shown
    assert said.count("RunInvalid: ") >= 2


def test_a_type_that_does_not_exist_is_not_taken_for_one_of_which_nothing_was_enqueued(said: str) -> None:
    assert "'bakery_bkae'" in said


def test_a_run_that_is_not_committed_is_explained(said: str) -> None:
    assert "there is no run 1: if the test has enqueued it, commit that transaction before perform()" in said


def test_a_failure_that_no_call_has_met_is_told(said: str) -> None:
    assert "fail_next was given Unavailable('the mail server is down'), but that gateway was not called" in said


def test_an_error_that_is_raised_again_is_shown_once(said: str) -> None:
    assert said.count("its handler raised") == 1  # the one that was not raised again


def test_pytests_own_errors_pass_through_a_handler(said: str) -> None:
    assert "said in the handler" in said


# What prevents a session from starting


def begun(folder: Path, environment: dict[str, str]) -> str:
    """Return pytest's output for one check."""
    done = run_pytest(folder, environment, "bakery/checks.py", "-k", "result_is_seen")
    return "".join(line.removeprefix("E  ").strip() + " " for line in done.stdout.splitlines())


def test_an_app_that_nobody_names_is_asked_for(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    (bakery / "pytest.ini").unlink()
    told = begun(bakery, environment_of_tests)
    assert "tests need your app: set ROWCALL_APP to the package with your job_types and handlers" in told
    assert "1 error" in told
    assert "1 passed" in begun(bakery, {**environment_of_tests, "ROWCALL_APP": "bakery"})


def test_an_app_that_cannot_be_imported_is_named(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    (bakery / "pytest.ini").write_text("[pytest]\nrowcall_app = bakehouse\n")
    assert "there is no module bakehouse.job_types on Python's path" in begun(bakery, environment_of_tests)


def test_a_type_without_a_handler_is_named(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    with (bakery / "bakery" / "job_types.py").open("a") as file:
        file.write('\nFORGOTTEN = JobType("bakery_forgotten", schema=Loaf)\n')
    told = begun(bakery, environment_of_tests)
    assert "job type 'bakery_forgotten' has no handler" in told
    assert "another exception occurred" not in told


def test_a_server_that_does_not_answer_is_named(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    environment = {**environment_of_tests, "DATABASE_URL": "postgresql://me:hush@127.0.0.1:1/none"}
    told = begun(bakery, environment)
    assert "no connection to postgresql://me:" in told
    assert "check DATABASE_URL" in told
    assert "hush" not in told


def test_without_any_server_both_ways_out_are_named(bakery: Path, environment_of_tests: dict[str, str]) -> None:
    del environment_of_tests["DATABASE_URL"]
    with (bakery / "conftest.py").open("a") as file:
        file.write(NOWHERE)
    told = begun(bakery, environment_of_tests)
    assert "tests need PostgreSQL, and DATABASE_URL is not set: set it to a server's URL, or install" in told
    assert "pip install 'rowcall[local]'" in told


def test_a_role_that_may_make_no_database_is_told_what_it_lacks(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str
) -> None:
    with database.transaction(server_url) as connection:
        database.fetch_all(connection, "CREATE ROLE bakery_without_rights LOGIN PASSWORD 'flour'")
    try:
        address = server_url.rpartition("@")[2]
        environment = {**environment_of_tests, "DATABASE_URL": f"postgresql://bakery_without_rights:flour@{address}"}
        assert "ALTER ROLE ... CREATEDB" in begun(bakery, environment)
    finally:
        with database.transaction(server_url) as connection:
            database.fetch_all(connection, "DROP ROLE bakery_without_rights")


def test_a_pooler_that_shares_sessions_is_refused(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str, tmp_path: Path
) -> None:
    with pgbouncer(server_url, "transaction", tmp_path) as url:
        told = begun(bakery, {**environment_of_tests, "DATABASE_URL": url})
    assert "tests cannot use DATABASE_URL: it points to a pooler in transaction mode" in told


def test_a_pooler_that_keeps_sessions_apart_is_fine(
    bakery: Path, environment_of_tests: dict[str, str], server_url: str, tmp_path: Path
) -> None:
    with pgbouncer(server_url, "session", tmp_path) as url:
        done = run_pytest(
            bakery, {**environment_of_tests, "DATABASE_URL": url}, "bakery/checks.py", "-k", "result_is_seen"
        )
    assert "1 passed" in done.stdout, done.stdout
