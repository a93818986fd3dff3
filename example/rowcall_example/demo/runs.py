"""The demo's runs: what `rowcall up` asks for, so that each built-in job is seen at work.

All that they do stays on this machine.  Where the environment names a database, a mail server or a payment provider,
there are none: what a team has set is not for trying things on.
"""

from __future__ import annotations

import base64
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from rowcall import queue
from rowcall.base.database import PgConnection, fetch_all, fetch_value, transaction
from rowcall.base.errors import DemoRefused, KeyConflict
from rowcall.base.secret_files import read_private, write_private
from rowcall.base.settings import Settings
from rowcall.status import Status
from rowcall_example.demo import seed
from rowcall_example.demo.outside import DECLINED_INVOICE, FLAKY, HOST
from rowcall_example.demo.rows import email_of

USERS = 20

# Its due date is far enough away that no reminder of it goes out meanwhile, as with the one that is declined.
CHARGED_INVOICE = "DEMO-001-4"

USER = "SELECT id FROM example.users WHERE email = %(email)s"

INVOICES = "SELECT number, id FROM example.invoices WHERE number = ANY (%(numbers)s) ORDER BY number"

Asked = tuple[str, dict[str, Any], str | None]


@dataclass(frozen=True)
class Demo:
    """A demo that can be shown: the day it is of, where its outside is, and what processes must be told of that."""

    today: date
    port: int
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Shown:
    """Where to look, and the run that only a person brings to its end, until somebody has."""

    mails: Path
    files: Path
    charges: Path
    webhooks: Path
    declined_run: int | None


def prepare(settings: Settings, url: str) -> Demo | None:
    """Seed the small SaaS and choose what its outside is reached with; None where the demo has no place."""
    if settings.database_url or settings.smtp or settings.payment_url:
        return None
    try:
        with transaction(url) as connection:
            today = seed.seed(connection, USERS).today
    except DemoRefused:
        return None
    folder = settings.home / "demo"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    port = _kept_port(folder / "port")
    told = {
        "ROWCALL_PAYMENT_URL": f"http://{HOST}:{port}",
        "ROWCALL_PAYMENT_KEY": _kept(folder / "payment_key", lambda: f"sk_demo_{secrets.token_hex(16)}"),
        "ROWCALL_WEBHOOK_SECRET": _kept(folder / "webhook_secret", _signing_secret),
        "ROWCALL_WEBHOOK_ALLOW_LOOPBACK": "on",
    }
    return Demo(today, port, {name: text for name, text in told.items() if not os.environ.get(name, "").strip()})


def ask(settings: Settings, url: str, shown: Demo) -> Shown:
    """Enqueue the demo's runs of the day; those that were asked for before stay what they are."""
    declined = None
    with transaction(url) as connection:
        for job_type, payload, key in _runs(connection, shown):
            # The port was in use, and the day's webhooks go where the outside was before.
            with suppress(KeyConflict):
                asked = queue.enqueue(connection, job_type, payload, key=key, created_by="rowcall up")
                declined = asked.run_id if job_type == "charge_invoice" else declined
        if declined and queue.get_run(connection, declined)["status"] == Status.SUCCEEDED:
            declined = None
    folder = settings.home / "demo"
    outside = (folder / "charges.jsonl", folder / "webhooks")
    return Shown(settings.mail_folder, settings.file_folder, *outside, declined)


def _runs(connection: PgConnection, shown: Demo) -> Iterator[Asked]:
    """Each built-in job once or twice; the invoice whose charge is declined comes after the other."""
    today, yesterday = str(shown.today), str(shown.today - timedelta(days=1))
    monday = shown.today - timedelta(days=shown.today.weekday() + 7)
    user_id = fetch_value(connection, USER, {"email": email_of(1)})
    week = {"from": str(monday), "to": str(monday + timedelta(days=6))}
    yield "send_weekly_report", {"user_id": user_id, "date_range": week}, None
    for invoice in fetch_all(connection, INVOICES, {"numbers": [CHARGED_INVOICE, DECLINED_INVOICE]}):
        yield "charge_invoice", {"invoice_id": invoice["id"]}, None
    for name in ("steady", FLAKY.strip("-")):
        event = {"type": "day.begun", "data": {"day": today, "receiver": name}}
        hooks = f"http://{HOST}:{shown.port}/hooks"
        yield "deliver_webhook", {"event_id": f"demo-{today}-{name}", "url": hooks, "body": event}, None
    yield "build_sales_report", {"date": yesterday}, None
    yield "cleanup_nightly", {"day": yesterday}, None
    yield "refresh_cache", {"name": "dashboard:open_invoices"}, f"demo:refresh_cache:{today}"
    yield "send_invoice_reminders", {"day": today}, None


def _kept(file: Path, make: Callable[[], str]) -> str:
    """The secret of last time, or a new one."""
    known = read_private(file)
    if not known:
        write_private(file, known := make())
    return known


def _signing_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _kept_port(file: Path) -> int:
    """The port of last time, because the runs of that time know it; another one where somebody else has it now."""
    try:
        port = _bound(int(read_private(file) or 0))
    except OSError:
        port = _bound(0)
    write_private(file, str(port))
    return port


def _bound(port: int) -> int:
    with socket.create_server((HOST, port)) as probe:
        free: int = probe.getsockname()[1]
    return free
