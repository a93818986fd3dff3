"""A small SaaS for tests: its database, the servers that it calls, and its worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rowcall import queue
from rowcall.base import database
from rowcall.base.database import fetch_all, fetch_value
from tests.support.processes import ROOT, rowcall, wait_until
from tests.support.rows import row_of
from tests.support.servers.mail import MailServer, mail_server
from tests.support.servers.provider import KEY, Provider
from tests.support.servers.web import WebServer, serving

WEEK = {"from": "2026-03-23", "to": "2026-03-29"}

ROWS = """
INSERT INTO example.users (email, name, time_zone) VALUES ('office@example.com', 'Office', 'Europe/Berlin');
INSERT INTO example.orders (user_id, amount_minor, currency, ordered_at)
SELECT 1, 1000 * number, 'EUR', '2026-03-24 12:00+01'::timestamptz + number * interval '1 hour'
FROM generate_series(1, 5) AS number;
INSERT INTO example.invoices (user_id, number, amount_minor, currency, due_on)
VALUES (1, 'R-1', 4900, 'EUR', '2026-03-24');
"""


class Saas:
    """A database with one user and one invoice, and the external services."""

    def __init__(self, environment: dict[str, str], url: str, home: Path) -> None:
        self.url = url
        self.mail = MailServer()
        self.provider = Provider()
        self.receiver = WebServer()
        self.files = home / "files"
        self.environment = {
            **environment,
            "DATABASE_URL": url,
            "PYTHONPATH": str(ROOT),
            "ROWCALL_POLL": "0.05",
            "ROWCALL_FILES": str(self.files),
            "ROWCALL_MAIL_FROM": "Small SaaS <saas@example.com>",
            "ROWCALL_PAYMENT_KEY": KEY,
            "ROWCALL_WEBHOOK_SECRET": "whsec_" + "c2VjcmV0IG9mIGEgdGVzdCwgb2YgMzIgYnl0ZXMhIQ==",
            "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on",
        }

    def ask(self, job_type: str, **payload: Any) -> int:
        """Enqueue a run."""
        with database.transaction(self.url) as connection:
            return queue.enqueue(connection, job_type, payload).run_id

    def ask_for(self, job_type: str) -> int:
        """Enqueue a run of this built-in type, with a valid payload."""
        payloads: dict[str, dict[str, Any]] = {
            "send_weekly_report": {"user_id": 1, "date_range": WEEK},
            "send_invoice_email": {"invoice_id": 1, "kind": "due"},
            "charge_invoice": {"invoice_id": 1},
            "deliver_webhook": {"event_id": "evt_1", "url": f"{self.receiver.url}/hook", "body": {"paid": 1}},
            "build_sales_report": {"date": "2026-03-24"},
        }
        return self.ask(job_type, **payloads[job_type])

    def work(self, *options: str, **settings: str) -> None:
        """Let a worker do all due runs, including those that they enqueue."""
        worked = rowcall({**self.environment, **settings}, "worker", "once", *options)
        assert worked.returncode == 0, worked.stderr

    def attempt(self, **settings: str) -> None:
        """Let a worker make only one attempt, even if the next one is due before the worker ends."""
        self.work("--limit", "1", **settings)

    def row(self, run_id: int) -> dict[str, Any]:
        """Return the run's row."""
        with database.transaction(self.url) as connection:
            return row_of(connection, run_id)

    def wait(self, run_id: int, status: str) -> None:
        """Return as soon as the run has this status."""
        wait_until(lambda: self.row(run_id)["status"] == status, f"run {run_id} is {status}")

    def states(self, kind: str) -> list[str]:
        """Return the states of the effects of this kind, the first one first."""
        return [row["state"] for row in self.sql(f"SELECT state FROM rowcall.{kind} ORDER BY id")]

    def try_again_now(self) -> None:
        """Let all leases expire, and make failed and snoozed runs due."""
        self.sql("UPDATE rowcall.job_runs SET locked_until = now() - interval '1 second' WHERE status = 'running'")
        self.sql("UPDATE rowcall.job_runs SET run_at = now() WHERE status IN ('failed', 'queued')")

    def happened(self, kind: str) -> int:
        """Return how often an effect of this kind has happened."""
        seen = {
            "sent_emails": lambda: len(self.mail.mails),
            "payments": lambda: len(self.provider.charges),
            "delivered_webhooks": lambda: len(self.receiver.requests),
            "generated_files": lambda: len([path for path in self.files.rglob("*") if path.is_file()]),
        }
        return seen[kind]()

    def sql(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """Run one statement and commit."""
        with database.transaction(self.url) as connection:
            return fetch_all(connection, statement, parameters)

    def value(self, statement: str) -> Any:
        """Return the value that a statement selects."""
        with database.transaction(self.url) as connection:
            return fetch_value(connection, statement)


@contextmanager
def small_saas(environment: dict[str, str], url: str, home: Path) -> Iterator[Saas]:
    """Yield the SaaS with its servers, for the block."""
    saas = Saas(environment, url, home)
    saas.sql(ROWS)
    with mail_server() as saas.mail, serving(saas.provider), serving(saas.receiver):
        saas.environment["ROWCALL_SMTP_URL"] = f"smtp://127.0.0.1:{saas.mail.port}?starttls=never"
        saas.environment["ROWCALL_PAYMENT_URL"] = saas.provider.url
        yield saas
