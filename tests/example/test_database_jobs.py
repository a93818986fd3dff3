"""Jobs whose effects are rows: each is done exactly once, with the run's success, although workers are killed."""

from __future__ import annotations

import pytest

from tests.example.saas import Saas
from tests.support.gate import Gate
from tests.support.processes import start

DAY = "2026-03-29"

OLD_SESSIONS = """
INSERT INTO example.sessions (user_id, started_at, expires_at)
SELECT 1, '2026-01-01', '2026-01-02'::timestamptz FROM generate_series(1, 2500);
INSERT INTO example.cache_entries (name, value, refreshed_at, expires_at)
SELECT 'old:' || number, '1', '2026-01-01', '2026-01-02' FROM generate_series(1, 1200) AS number;
"""

KEPT = """
INSERT INTO example.sessions (user_id, started_at, expires_at) VALUES
    (1, '2026-03-28', '2026-03-29 12:00+00'), (1, '2026-03-29', '2100-01-01');
INSERT INTO example.cache_entries (name, value, expires_at) VALUES ('fresh', '1', '2100-01-01');
"""


def kill_at_the_gate(saas: Saas, barred: Gate) -> None:
    """Kill the worker whose statement waits, and roll that statement back."""
    worker = start(saas.environment, "worker", "run")
    try:
        barred.wait()
    finally:
        worker.kill()
        worker.communicate()
    barred.turn_away()
    saas.try_again_now()


def test_cleanup_deletes_in_batches_and_goes_on_where_a_killed_worker_was(saas: Saas, barred: Gate) -> None:
    saas.sql(OLD_SESSIONS)
    saas.sql(KEPT)
    barred.hold_change("NEW.progress -> 'saved' ->> 'sessions' = '2000'")
    run_id = saas.ask("cleanup_nightly", day=DAY)
    kill_at_the_gate(saas, barred)
    assert saas.value("SELECT count(*) FROM example.sessions WHERE expires_at < '2026-02-01'") == 1500
    saas.work()
    run = saas.row(run_id)
    # Every deleted row is counted once, over both attempts.
    assert (run["status"], run["attempts"]) == ("succeeded", 2)
    assert run["result"] == {"sessions": 2500, "cache_entries": 1200}
    assert saas.value("SELECT count(*) FROM example.sessions") == 2
    assert [row["name"] for row in saas.sql("SELECT name FROM example.cache_entries")] == ["fresh"]


def test_cleanup_leaves_the_sessions_that_a_weekly_report_still_counts(saas: Saas) -> None:
    saas.sql(KEPT)
    run_id = saas.ask("cleanup_nightly", day=DAY)
    saas.work()
    assert saas.row(run_id)["result"] == {"sessions": 0, "cache_entries": 0}


def test_cleanup_goes_on_where_an_attempt_was_that_knew_of_less_to_delete(saas: Saas) -> None:
    run_id = saas.ask("cleanup_nightly", day=DAY)
    saas.sql('UPDATE rowcall.job_runs SET progress = \'{"saved": {"sessions": 5}}\'')
    saas.work()
    assert saas.row(run_id)["result"] == {"sessions": 5, "cache_entries": 0}


def test_reminders_fan_out_one_mail_an_invoice_and_a_second_time_adds_none(saas: Saas) -> None:
    saas.sql(
        "INSERT INTO example.invoices (user_id, number, amount_minor, currency, due_on) VALUES"
        " (1, 'R-2', 100, 'EUR', '2026-03-27'), (1, 'R-3', 100, 'EUR', '2026-03-17'),"
        " (1, 'R-4', 100, 'EUR', '2026-06-01')"
    )
    for key, added in (("one", 3), ("two", 0)):
        run_id = saas.ask("send_invoice_reminders", day="2026-03-24") if key == "one" else again(saas, key)
        saas.work()
        assert saas.row(run_id)["result"] == {"due": 3, "added": added}
    kinds = saas.sql(
        "SELECT payload ->> 'kind' AS kind FROM rowcall.job_runs WHERE job_type = 'send_invoice_email' ORDER BY 1"
    )
    assert [row["kind"] for row in kinds] == ["due", "overdue", "upcoming"]
    assert len(saas.mail.mails) == 3


def again(saas: Saas, key: str) -> int:
    """Enqueue the same reminders under another key."""
    return int(
        saas.sql(
            "INSERT INTO rowcall.job_runs (job_type, payload, idempotency_key)"
            " VALUES ('send_invoice_reminders', '{\"day\": \"2026-03-24\"}', %(key)s) RETURNING id",
            key=key,
        )[0]["id"]
    )


@pytest.mark.parametrize(
    ("job_type", "payload", "made"),
    [
        (
            "send_invoice_reminders",
            {"day": "2026-03-24"},
            "SELECT count(*) FROM rowcall.job_runs WHERE job_type = 'send_invoice_email'",
        ),
        ("refresh_cache", {"name": "dashboard:open_invoices"}, "SELECT count(*) FROM example.cache_entries"),
    ],
)
def test_rows_and_success_are_committed_together_or_not_at_all(
    saas: Saas, barred: Gate, job_type: str, payload: dict[str, str], made: str
) -> None:
    barred.hold_change(f"NEW.status = 'succeeded' AND NEW.job_type = '{job_type}'")
    run_id = saas.ask(job_type, **payload)
    kill_at_the_gate(saas, barred)
    assert saas.value(made) == 0
    saas.work()
    assert (saas.row(run_id)["status"], saas.value(made)) == ("succeeded", 1)


@pytest.mark.parametrize(
    ("job_type", "payload", "complaint"),
    [
        (
            "send_weekly_report",
            {"user_id": 99, "date_range": {"from": "2026-03-23", "to": "2026-03-29"}},
            "no user 99",
        ),
        ("charge_invoice", {"invoice_id": 99}, "no invoice 99"),
        ("send_invoice_email", {"invoice_id": 99, "kind": "due"}, "no invoice 99"),
        ("refresh_cache", {"name": "nothing"}, "nothing computes a cache entry 'nothing'"),
    ],
)
def test_what_is_not_there_is_given_up_at_once_and_named(
    saas: Saas, job_type: str, payload: dict[str, object], complaint: str
) -> None:
    run_id = saas.ask(job_type, **payload)
    saas.work()
    run = saas.row(run_id)
    assert (run["status"], run["attempts"]) == ("dead", 1)
    assert complaint in run["last_error"]


def test_an_invoice_that_was_paid_meanwhile_is_neither_charged_nor_reminded_of(saas: Saas) -> None:
    saas.sql("UPDATE example.invoices SET status = 'paid', paid_at = now()")
    runs = [saas.ask_for("charge_invoice"), saas.ask_for("send_invoice_email")]
    saas.work()
    assert [saas.row(run_id)["status"] for run_id in runs] == ["succeeded", "succeeded"]
    assert (saas.provider.charges, saas.mail.mails) == ([], [])
