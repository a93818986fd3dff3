"""send_invoice_email: send one reminder of one invoice."""

from __future__ import annotations

from typing import Any

from rowcall import Run
from rowcall_example.documents import write_invoice_letter
from rowcall_example.job_types import SEND_INVOICE_EMAIL
from rowcall_example.mailing import mail_letter
from rowcall_example.queries.invoices import ReminderKind, invoice_with_user


@SEND_INVOICE_EMAIL.handler
def send_invoice_email(run: Run) -> dict[str, Any]:
    """Send the reminder, unless the invoice was paid or voided after the run was enqueued."""
    invoice_id, kind = run.payload["invoice_id"], ReminderKind(run.payload["kind"])
    with run.step() as connection:
        invoice = invoice_with_user(connection, invoice_id)
    if invoice.status != "open":
        return {"sent": None, "reason": f"invoice {invoice.number} is {invoice.status}"}
    effect = mail_letter(
        run,
        write_invoice_letter(invoice, kind),
        invoice.user,
        key=f"invoice_email:{invoice_id}:{kind}",
        content={"template": "invoice", "invoice_id": invoice_id, "kind": kind},
    )
    return {"sent": effect.reference, "recipient": invoice.user.email}
