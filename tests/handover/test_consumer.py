"""A consumer without a broker: whether it may start, the runs that it gives back, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import Row, fetch_all
from rowcall.queue import Lease
from rowcall.queue.claims.handover import holder_of
from rowcall.queue.series.histogram import bucket_of
from rowcall.status import Status
from tests.support.processes import wait_until
from tests.support.rows import WORKER, run_in
from tests.support.shop import Shop

HOLDER = holder_of("mail", "shop.tasks.send")

CHECK = """
import os, threading
from rowcall_worker.handover import check_consumer
check_consumer(signal=None, sender=None)
links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
print(threading.active_count(), [link for link in links if os.path.exists(link) and "socket" in os.readlink(link)])
"""

# As Celery's child processes end when they are stopped at once.
PERFORM = """
import signal, sys
from rowcall_worker.handover import run_handed_over
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(run_handed_over(int(sys.argv[1]), int(sys.argv[2])))
"""

# As a Celery worker with a pool of threads.
IN_THREADS = """
import sys, threading
from rowcall_worker.handover import run_handed_over
for run_id, lease_no in zip(sys.argv[1::2], sys.argv[2::2]):
    threading.Thread(target=run_handed_over, args=(int(run_id), int(lease_no))).start()
"""

TRIES_TO_BEGIN = """
SELECT count(*) AS trying FROM pg_stat_activity
WHERE application_name = 'rowcall consumer' AND query LIKE '%%run.id = ' || %(id)s || ' AND%%'
"""

WAITS_FOR_THE_WORKER = """
SELECT count(*) AS looked FROM pg_stat_activity
WHERE application_name = 'rowcall consumer' AND query LIKE '%%locked_by FROM rowcall.job_runs WHERE id%%'
"""


@pytest.fixture
def parcels(environment: dict[str, str], fresh_url: str) -> Shop:
    shop = Shop(environment, fresh_url)
    shop.environment["ROWCALL_APP"] = "parcels"
    return shop


def python(parcels: Shop, *arguments: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and variables; None removes a variable."""
    chosen = {**os.environ, **parcels.environment, **variables}
    known = {name: value for name, value in chosen.items() if value is not None}
    return subprocess.run([sys.executable, *arguments], env=known, capture_output=True, text=True, check=False)


def begin(parcels: Shop, run: Row) -> subprocess.Popen[str]:
    """Begin to perform this run as its message would."""
    return subprocess.Popen(
        [sys.executable, "-c", PERFORM, str(run["id"]), str(run["lease_no"])],
        env={**os.environ, **parcels.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sent(parcels: Shop, **columns: str) -> Row:
    """Return a run whose message waits."""
    with database.transaction(parcels.url) as connection:
        return run_in(connection, Status.RUNNING, **{"locked_by": f"'{HOLDER}'", "attempts": "1", **columns})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ROWCALL_APP", None, "ROWCALL_APP is not set"),
        ("ROWCALL_APP", "parcel", "there is no module parcel"),
        ("DATABASE_URL", None, "DATABASE_URL is not set"),
        ("DATABASE_URL", "with another database", 'database "elsewhere" does not exist'),
        ("ROWCALL_LEASE", "long", "ROWCALL_LEASE"),
    ],
)
def test_a_consumer_with_wrong_settings_does_not_start_and_says_why(
    parcels: Shop, name: str, value: str | None, said: str
) -> None:
    if value == "with another database":
        value = parcels.url.rpartition("/")[0] + "/elsewhere"
    refused = python(parcels, "-c", CHECK, **{name: value})
    assert refused.returncode != 0
    assert refused.stderr.startswith("rowcall: this worker cannot perform runs: ")
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_consumer_whose_database_has_no_schema_does_not_start(parcels: Shop, empty_url: str) -> None:
    refused = python(parcels, "-c", CHECK, DATABASE_URL=empty_url)
    assert refused.returncode != 0
    assert "run `rowcall migrate`" in refused.stderr


def test_the_check_leaves_neither_a_connection_nor_a_thread(parcels: Shop) -> None:
    assert python(parcels, "-c", CHECK).stdout == "1 []\n"


def test_a_consumer_whose_database_is_away_starts_and_waits(parcels: Shop) -> None:
    checked = python(parcels, "-c", CHECK, DATABASE_URL="postgresql://127.0.0.1:1/shop")
    assert (checked.returncode, checked.stdout) == (0, "1 []\n")
    assert "database lost" in checked.stderr


def test_celery_ends_before_it_takes_a_message_if_its_settings_are_wrong(parcels: Shop) -> None:
    celery = ("-m", "celery", "--app", "parcels.tasks", "worker")
    refused = python(parcels, *celery, ROWCALL_APP=None, ROWCALL_BROKER_URL="amqp://127.0.0.1:1//")
    assert refused.returncode == 1
    assert "rowcall: this worker cannot perform runs: ROWCALL_APP is not set" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("app", ["parcels", "shop"], ids=["another type is handed over", "no type is handed over"])
def test_a_run_whose_type_is_not_handed_over_any_more_goes_back_to_its_queue(parcels: Shop, app: str) -> None:
    parcels.environment["ROWCALL_APP"] = app
    run = sent(parcels)
    told = begin(parcels, run).communicate()
    assert told[0] == "False\n"
    assert "its app does not hand this job type over: the run is queued" in told[1]
    row = parcels.row(run["id"])
    assert (row["status"], row["attempts"]) == (Status.QUEUED, 0)
    assert parcels.unsuccessful(run["id"]) == ["snooze"]


def test_a_run_that_its_worker_has_not_let_go_of_yet_goes_back_when_it_has(parcels: Shop) -> None:
    run = sent(parcels, locked_by=f"'{WORKER}'")
    process = begin(parcels, run)
    wait_until(lambda: parcels.sql(WAITS_FOR_THE_WORKER)[0]["looked"] == 1, "the consumer looks whose the run is")
    with database.transaction(parcels.url) as connection:
        assert queue.hand_over(connection, {Lease(WORKER, run["id"], run["lease_no"]): HOLDER})
    assert process.communicate()[0] == "False\n"
    assert parcels.row(run["id"])["status"] == Status.QUEUED


def test_a_run_whose_type_the_app_does_not_know_is_refused(parcels: Shop) -> None:
    run = sent(parcels, job_type="'parcel_weight'")
    told = begin(parcels, run).communicate()
    assert told[0] == "False\n"
    assert "ROWCALL_APP=parcels has no type parcel_weight" in told[1]
    assert parcels.row(run["id"]) == run


@pytest.mark.parametrize("asked", [False, True], ids=["not cancelled", "cancelled meanwhile"])
def test_a_consumer_that_is_stopped_at_once_releases_its_run_and_ends(
    parcels: Shop, tmp_path_factory: pytest.TempPathFactory, asked: bool
) -> None:
    doors = tmp_path_factory.mktemp("doors")
    payload = f"""'{{"order_id": 1, "doors": "{doors}"}}'"""
    run = sent(parcels, job_type="'parcel_send'", payload=payload)
    process = begin(parcels, run)
    wait_until((doors / f"{run['lease_no']} knocked").exists, "the handler works")
    if asked:
        parcels.sql("UPDATE rowcall.job_runs SET cancel_requested_at = now() WHERE id = %(id)s", id=run["id"])
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 7
    row = parcels.row(run["id"])
    assert row["status"] == (Status.CANCELLED if asked else Status.QUEUED)
    assert row["last_error"] == "the consumer was stopped before the run was finished"
    assert parcels.unsuccessful(run["id"]) == ["release"]
    counted = parcels.sql("SELECT released, cancelled FROM rowcall.run_counts")
    assert counted == [{"released": int(not asked), "cancelled": int(asked)}]


def test_while_a_message_waits_for_a_locked_row_the_leases_of_other_runs_are_renewed(
    parcels: Shop, tmp_path: Path
) -> None:
    parcels.environment["ROWCALL_HEARTBEAT"] = "0.2"
    payload = {"order_id": 1, "ends": "well", "folder": str(tmp_path)}
    performed, waiting = (
        sent(parcels, job_type="'parcel_send'", payload=f"'{json.dumps({**payload, 'doors': doors})}'")
        for doors in (str(tmp_path), "")
    )
    leases = set()

    def has_three_more_leases() -> bool:
        leases.add(parcels.row(performed["id"])["locked_until"])
        return len(leases) > 3

    numbers = [str(run[name]) for run in (performed, waiting) for name in ("id", "lease_no")]
    with database.transaction(parcels.url) as holder:
        fetch_all(holder, "SELECT FROM rowcall.job_runs WHERE id = %(id)s FOR UPDATE", waiting)
        process = subprocess.Popen(
            [sys.executable, "-c", IN_THREADS, *numbers], env={**os.environ, **parcels.environment}
        )
        try:
            wait_until(
                lambda: parcels.sql(TRIES_TO_BEGIN, id=waiting["id"])[0]["trying"] == 1, "it tries the locked row"
            )
            wait_until(has_three_more_leases, "the lease is renewed again and again")
        finally:
            (tmp_path / f"{performed['lease_no']} open").touch()
    assert process.wait() == 0
    assert [parcels.row(run["id"])["status"] for run in (performed, waiting)] == [Status.SUCCEEDED] * 2


def test_a_consumer_counts_its_runs_when_it_has_performed_them_and_how_long_they_waited(
    parcels: Shop, tmp_path: Path
) -> None:
    payload = f"""'{{"order_id": 1, "ends": "well", "doors": "", "folder": "{tmp_path}"}}'"""
    run = sent(parcels, job_type="'parcel_send'", payload=payload, run_at="now() - interval '50 minutes'")
    assert begin(parcels, run).communicate()[0] == "True\n"
    [counted] = parcels.sql("SELECT worker, succeeded, waiting FROM rowcall.run_counts")
    assert counted["worker"].startswith("consumer ")
    assert counted["succeeded"] == 1
    [(bucket, many)] = [(bucket, many) for bucket, many in enumerate(counted["waiting"]) if many]
    assert (bucket, many) == (bucket_of(50 * 60), 1)
