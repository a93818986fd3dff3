"""What `rowcall up` shows: every built-in job, a retry that succeeds, and one run for a person to retry."""

from __future__ import annotations

import json
import re
import signal
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from rowcall.base import database
from rowcall.job_types import load_catalogue
from rowcall.job_types.alerting import CALL_PING_URL, SEND_INCIDENTS
from rowcall.job_types.housekeeping import CARRY_OUT_OPERATION
from rowcall.status import LIVE
from tests.cli.test_up import Up, home, listed
from tests.support.processes import rowcall, wait_until

__all__ = ["home"]  # a fixture


def mails(folder: Path) -> list[EmailMessage]:
    read = [message_from_bytes(file.read_bytes(), EmailMessage, policy=default) for file in folder.glob("*.eml")]
    return [mail for mail in read if isinstance(mail, EmailMessage)]


def kinds(mail: EmailMessage) -> set[str]:
    return {part.get_content_type() for part in mail.walk()}


def charges(folder: Path) -> dict[str, int]:
    """Return idempotency key -> status of the response."""
    told = [json.loads(line) for line in (folder / "charges.jsonl").read_text().splitlines()]
    return {line["idempotency_key"]: line["status"] for line in told}


def at_rest(up: Up) -> bool:
    """Whether all runs are finished; failed ones are made due."""
    with database.transaction(up.database) as connection:
        database.fetch_all(
            connection, "UPDATE rowcall.job_runs SET run_at = now() WHERE status = 'failed' AND run_at > now()"
        )
    return not listed(up, *LIVE)


def of_type(runs: list[dict[str, Any]], job_type: str) -> list[dict[str, Any]]:
    return [run for run in runs if run["job_type"] == job_type]


def test_each_built_in_job_is_seen_at_work_and_what_a_day_asks_for_is_asked_once(home: dict[str, str]) -> None:
    root = Path(home["ROWCALL_HOME"])
    up = Up(home, "--port", "0")
    wait_until(lambda: at_rest(up), "the demo's runs are finished")
    runs = listed(up)
    types = load_catalogue("rowcall_example")
    housekeeping = {definition.job_type.name for definition in types.definitions.values()}
    # No operator has changed many runs, and nobody is told of alerts.
    unasked = {CARRY_OUT_OPERATION.name, SEND_INCIDENTS.name, CALL_PING_URL.name}
    assert {run["job_type"] for run in runs} == set(types) - housekeeping - unasked

    [report] = [mail for mail in mails(root / "mail") if "application/pdf" in kinds(mail)]
    assert "image/png" in kinds(report)
    assert report["From"] == "Harbour Supplies <billing@harbour-supplies.example>"
    assert len(mails(root / "mail")) == 1 + len(of_type(runs, "send_invoice_email")) > 10
    assert {file.suffix for file in (root / "files" / "sales_report").iterdir()} == {".pdf", ".csv"}

    steady, flaky = sorted(of_type(runs, "deliver_webhook"), key=lambda run: int(run["attempts"]))
    assert [(run["status"], run["attempts"]) for run in (steady, flaky)] == [("succeeded", 1), ("succeeded", 2)]
    assert [file.name.rpartition("-")[2] for file in sorted((root / "demo" / "webhooks").iterdir())] == [
        "flaky.json",
        "steady.json",
    ]

    [dead] = [run for run in runs if run["status"] != "succeeded"]
    assert (dead["status"], dead["error_type"]) == ("dead", "Declined")
    assert sorted(charges(root / "demo").values()) == [200, 402]
    [retry] = re.findall(r"runs retry (\d+)", up.said)
    assert retry == str(dead["id"])
    assert rowcall(home, "runs", "retry", retry).returncode == 0
    wait_until(lambda: not listed(up, "dead") and at_rest(up), "the retried charge succeeds")
    [declined] = [key for key, status in charges(root / "demo").items() if status == 402]
    assert charges(root / "demo")[f"{declined}:2"] == 200
    up.end(signal.SIGINT)

    again = Up(home, "--port", "0")
    assert "runs retry" not in again.said
    wait_until(lambda: at_rest(again), "the runs of the second start are finished")
    known = {run["id"] for run in runs}
    assert [run["job_type"] for run in listed(again) if run["id"] not in known] == ["noop"]
    again.end(signal.SIGINT)
