"""The demo's runs: `rowcall up` enqueues them to show each job."""

from __future__ import annotations

import base64
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rowcall import enqueue
from rowcall_example.demo.outside import DECLINED_INVOICE, FLAKY, HOST, hooks_url
from rowcall_example.demo.rows import email_of
from rowcall_example.demo.seed import TODAY, Seeded, seed, seeded_on
from rowcall_example.documents.wording import COMPANY
from rowcall_example.errors import DemoRefused
from rowcall_example.sql import Connection, fetch_all, fetch_value

USERS = 20

# This invoice and the declined one are due so late that no reminder is sent for them.
CHARGED_INVOICE = "DEMO-001-4"

USER = "SELECT id FROM example.users WHERE email = %(email)s"

INVOICES = "SELECT number, id FROM example.invoices WHERE number = ANY (%(numbers)s) ORDER BY number"

HAS_SUCCEEDED = "SELECT status = 'succeeded' FROM rowcall.job_runs WHERE id = %(run_id)s"

Asked = tuple[str, dict[str, Any], str | None]


def prepare(connection: Connection, folder: Path) -> Demo | None:
    """Add the demo's rows, and choose how to reach its services; return None if the database is in use.

    On a later day, new rows as of that day replace the old ones, so that reports and reminders have something to say.
    The folder keeps what must be the same at the next start.
    """
    try:
        seeded = _seed_for_today(connection)
    except DemoRefused:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    port = _kept_port(folder / "port")
    settings = {
        "ROWCALL_PAYMENT_URL": f"http://{HOST}:{port}",
        "ROWCALL_PAYMENT_KEY": _kept(folder / "payment_key", lambda: f"sk_demo_{secrets.token_hex(16)}"),
        "ROWCALL_WEBHOOK_SECRET": _kept(folder / "webhook_secret", _signing_secret),
        "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on",
        "ROWCALL_MAIL_FROM": f"{COMPANY} <billing@harbour-supplies.example>",
    }
    unset = {name: text for name, text in settings.items() if not os.environ.get(name, "").strip()}
    # An empty ..._FILE variable hides the one in the environment, which would conflict with the value.
    return Demo(seeded, folder, port, unset | {f"{name}_FILE": "" for name in unset})


class Shown(NamedTuple):
    """Lines that say where to see the results, what was added, and the runs that fail on purpose, each with a note."""

    lines: list[str]
    summary: str
    notes: dict[int, str]


@dataclass(frozen=True)
class Demo:
    """A demo that is ready to run: the rows added for its day, its folder, and its services' port and settings."""

    seeded: Seeded
    folder: Path
    port: int
    environment: Mapping[str, str]

    @property
    def command(self) -> list[str]:
        """Return the `rowcall` command that runs the stand-ins, with these settings in its environment."""
        return ["demo", "outside", "--port", str(self.port), "--folder", str(self.folder)]

    def ask(self, connection: Connection, program: str, mails: Path, files: Path) -> Shown:
        """Enqueue the day's runs, each only once."""
        runs = [
            (job_type, enqueue(connection, job_type, payload, key=key, created_by="rowcall up"))
            for job_type, payload, key in _runs(connection, self.seeded.today, self.port)
        ]
        # The last charge is the one that is declined, and the last webhook the one that is refused at first.
        last = {job_type: run.run_id for job_type, run in runs}
        declined, refused = last["charge_invoice"], last["deliver_webhook"]
        lines = [
            "The example's jobs are running.  See what they produce, and how each of them ended:",
            "",
            f"  emails      {mails}/*.eml",
            f"  reports     {files}/sales_report   (PDF and CSV)",
            f"  charges     {self.folder}/charges.jsonl",
            f"  webhooks    {self.folder}/webhooks   (one is refused at first, and delivered again)",
            "",
            f"  {program} runs list",
            f"  {program} runs list --status dead",
        ]
        if not fetch_value(connection, HAS_SUCCEEDED, {"run_id": declined}):
            lines.append(f"  {program} runs retry {declined}   (its charge was declined; the next one will succeed)")
        notes = {
            refused: "this webhook is refused on purpose; its retry succeeds",
            declined: f"this charge is declined on purpose: `{program} runs retry {declined}` charges it",
        }
        return Shown(lines, _summary(self.seeded, sum(not run.replayed for _, run in runs)), notes)


def _summary(seeded: Seeded, new: int) -> str:
    """Say what this start has added."""
    if seeded.users:
        return f"added {seeded.users} users with orders and invoices; enqueued {new} runs"
    if new:
        return f"enqueued {new} runs for the users of an earlier start"
    return "its users and today's runs exist already: nothing is added"


def _seed_for_today(connection: Connection) -> Seeded:
    today: date = fetch_value(connection, TODAY)
    before = seeded_on(connection)
    return seed(connection, USERS, today, anew=before is not None and before < today)


def _runs(connection: Connection, day: date, port: int) -> Iterator[Asked]:
    """Yield each job once or twice; the invoice whose charge is declined comes last."""
    today, yesterday = str(day), str(day - timedelta(days=1))
    monday = day - timedelta(days=day.weekday() + 7)
    user_id = fetch_value(connection, USER, {"email": email_of(1)})
    week = {"from": str(monday), "to": str(monday + timedelta(days=6))}
    yield "send_weekly_report", {"user_id": user_id, "date_range": week}, None
    for invoice in fetch_all(connection, INVOICES, {"numbers": [CHARGED_INVOICE, DECLINED_INVOICE]}):
        yield "charge_invoice", {"invoice_id": invoice["id"]}, None
    for name in ("steady", FLAKY.strip("-")):
        event = {"type": "day.begun", "data": {"day": today, "receiver": name}}
        # The id contains the port, because a receiver on another port needs an event of its own.
        event_id = f"demo-{today}-{port}-{name}"
        yield "deliver_webhook", {"event_id": event_id, "url": hooks_url(port), "body": event}, None
    yield "build_sales_report", {"date": yesterday}, None
    yield "cleanup_nightly", {"day": yesterday}, None
    yield "refresh_cache", {"name": "dashboard:open_invoices"}, f"demo:refresh_cache:{today}"
    yield "send_invoice_reminders", {"day": today}, None


def _kept(file: Path, make: Callable[[], str]) -> str:
    """Return the file's content, or write a new value; only the owner may read the file."""
    if not file.exists() or not file.read_text():
        file.touch(mode=0o600)
        file.write_text(make())
    return file.read_text()


def _signing_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _kept_port(file: Path) -> int:
    """Return the port of the last start, to which earlier runs refer, or another one if that port is in use."""
    try:
        port = _free_port(int(_kept(file, lambda: "0")))
    except OSError:
        port = _free_port(0)
    file.write_text(str(port))
    return port


def _free_port(port: int) -> int:
    with socket.create_server((HOST, port)) as probe:
        free: int = probe.getsockname()[1]
    return free
