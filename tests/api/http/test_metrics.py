"""/metrics: the statistics in Prometheus's format, also when there is no database."""

from __future__ import annotations

from collections.abc import Iterator

import flask
import pytest
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import TestResponse

from rowcall.access.api_keys import create_key
from rowcall.access.audit import Operator
from rowcall.base import database
from rowcall.base.database import PgConnection
from rowcall.queue import pause_queue
from rowcall.status import Status
from rowcall_api.app import create_app
from rowcall_api.routes.metrics import QUEUES_MOST
from tests.api.conftest import MAKER, Call, let_nobody_in, told
from tests.support.rows import run_in

PUBLIC = "ROWCALL_METRICS_PUBLIC"

# The queue with the highest number has waited longest.
INVENTED = """
INSERT INTO rowcall.job_runs (job_type, queue, run_at, max_attempts, status)
SELECT 'noop', 'invented-' || number, now() - number * interval '1 minute', 1, 'queued'
FROM generate_series(1, %(queues)s) AS number
"""


@pytest.fixture(scope="module")
def rows(module_url: str) -> Iterator[PgConnection]:
    """Yield a connection to a database in which one queue has a run in each status."""
    connection = database.connect(module_url)
    connection.autocommit = True
    for status in Status:
        run_in(connection, status, queue="'mail'")
    pause_queue(connection, "mail", Operator("a test"))
    yield connection
    connection.close()


def read(answer: TestResponse) -> dict[tuple[str, str], float]:
    """Return name and label -> value, as Prometheus parses it."""
    assert (answer.status_code, answer.mimetype) == (200, "text/plain")
    return {
        (sample.name, "".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_prometheus_reads_the_figures_of_each_queue(call: Call, rows: PgConnection) -> None:
    figures = read(call("GET", "/metrics", scope="read"))
    told_of_mail = {name: value for (name, label), value in figures.items() if label == "mail"}
    assert told_of_mail.pop("rowcall_oldest_due_age_seconds") >= 60
    assert told_of_mail == {
        "rowcall_runs_due": 2,
        "rowcall_runs_queued": 1,
        "rowcall_runs_running": 1,
        "rowcall_runs_handed_over": 0,
        "rowcall_runs_failed": 1,
        "rowcall_queue_paused": 1,
    }
    assert figures["rowcall_runs_due", "maintenance"] == 0


def test_they_are_those_of_stats(call: Call, rows: PgConnection) -> None:
    figures, stats = read(call("GET", "/metrics")), told(call("GET", "/v1/stats"))
    for queue in stats["queues"]:
        assert figures["rowcall_runs_running", queue["name"]] == queue["running"]
    for kind, unknown in stats["effects_unknown"].items():
        assert figures["rowcall_effects_unknown", kind] == unknown
    assert figures["rowcall_workers_alive", ""] == stats["workers_alive"]
    assert figures["rowcall_attempts_failed_last_hour", ""] == stats["attempts_failed_last_hour"]
    assert figures["rowcall_runs_dead_last_day", ""] == stats["runs_dead_last_day"]
    assert figures["rowcall_definitions_paused", ""] == stats["definitions"]["paused"]
    assert figures["rowcall_definitions_overdue", ""] == stats["definitions"]["overdue"]
    assert 0 <= figures["rowcall_schedule_tick_age_seconds", ""] <= stats["tick"]["age_seconds"]
    assert figures["rowcall_database_up", ""] == 1


def test_every_gauge_says_what_it_means_and_is_named_as_prometheus_advises(call: Call, rows: PgConnection) -> None:
    families = list(text_string_to_metric_families(call("GET", "/metrics").text))
    assert len(families) == 16
    for family in families:
        assert family.type == "gauge"
        assert family.name.startswith("rowcall_")
        assert ("age" in family.name) == family.name.endswith("_seconds")
        assert family.documentation.endswith(".")
    assert sum("lert" in family.documentation for family in families) >= 9


def test_openmetrics_is_answered_to_who_asks_for_it(call: Call, rows: PgConnection) -> None:
    answer = call("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.mimetype == "application/openmetrics-text"
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize(("scope", "status"), [("read", 200), ("admin", 200), ("enqueue", 403), ("operate", 403)])
def test_they_need_the_scope_read(call: Call, scope: str, status: int) -> None:
    assert call("GET", "/metrics", scope=scope).status_code == status


def test_without_a_key_nothing_is_told_unless_that_was_switched_on(
    app: flask.Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert app.test_client().get("/metrics").status_code == 401
    monkeypatch.setenv(PUBLIC, "on")
    assert read(app.test_client().get("/metrics"))["rowcall_database_up", ""] == 1


def test_of_very_many_queues_those_that_were_made_or_wait_longest_are_listed_and_the_others_counted(
    call: Call, rows: PgConnection
) -> None:
    before = read(call("GET", "/metrics"))
    assert before["rowcall_queues_unlisted", ""] == 0
    database.fetch_all(rows, INVENTED, {"queues": 300})
    figures = read(call("GET", "/metrics"))
    database.fetch_all(rows, "DELETE FROM rowcall.job_runs WHERE queue LIKE 'invented-%%'")
    queues = {label for name, label in figures if name == "rowcall_runs_due"}
    assert len(queues) == QUEUES_MOST
    assert {"mail", "maintenance", "invented-300"} <= queues
    assert "invented-1" not in queues
    shown = {label for name, label in before if name == "rowcall_runs_due"}
    assert figures["rowcall_queues_unlisted", ""] == 300 + len(shown) - QUEUES_MOST


@pytest.mark.parametrize("public", ["off", "on"])
def test_a_database_that_is_gone_is_a_figure_too_and_the_only_one(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, public: str
) -> None:
    monkeypatch.setenv(PUBLIC, public)
    with database.transaction(fresh_url) as connection:
        key = create_key(connection, "scraper", ["read"], MAKER)
    app = create_app(fresh_url)
    let_nobody_in(fresh_url)
    headers = {"Authorization": f"Bearer {key}"}
    assert read(app.test_client().get("/metrics", headers=headers)) == {("rowcall_database_up", ""): 0}
    assert app.test_client().get("/metrics").status_code == (200 if public == "on" else 401)
    app.extensions["database"].dispose()
