"""send_invoice_reminders: enqueue an email for each invoice whose reminder is due on the given day."""

from __future__ import annotations

from datetime import date

from rowcall import Run
from rowcall_example.job_types import SEND_INVOICE_EMAIL, SEND_INVOICE_REMINDERS
from rowcall_example.queries.invoices import due_invoices

# More than any small SaaS sends in a day; the next page enqueues the rest, in the same transaction.
PAGE = 10_000


@SEND_INVOICE_REMINDERS.handler
def send_invoice_reminders(run: Run) -> None:
    """Enqueue the emails together with the run's success; their keys prevent a second run from adding any."""
    day = date.fromisoformat(run.payload["day"])
    result = {"due": 0, "added": 0}
    with run.transaction(result) as connection:
        after = 0
        while page := due_invoices(connection, day, after, PAGE):
            mails = [{"invoice_id": reminder.invoice_id, "kind": reminder.kind} for reminder in page]
            outcomes = SEND_INVOICE_EMAIL.enqueue_many(connection, mails, created_by=f"run:{run.id}")
            result["due"] += len(outcomes)
            result["added"] += sum(not outcome.replayed for outcome in outcomes)
            after = page[-1].invoice_id
