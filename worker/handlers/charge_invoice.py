"""charge_invoice: an invoice is paid by its customer's means of payment, once."""

from __future__ import annotations

from typing import Any

from shared.business.invoices import Marked, invoice_with_user, mark_paid
from shared.errors import Permanent
from worker.context import Run
from worker.handlers import handles


@handles("charge_invoice")
def charge_invoice(run: Run) -> dict[str, Any] | None:
    """Charge what the invoice asks for, then mark it as paid with the run's success."""
    with run.step() as connection:
        invoice = invoice_with_user(connection, run.payload["invoice_id"])
    if invoice.status == "paid":
        return {"invoice_id": invoice.id, "charged": False, "reason": "it was paid before"}
    if invoice.status == "void":
        raise Permanent(f"invoice {invoice.number} is void: there is nothing to charge")
    effect = run.effect(
        "payments",
        key=f"invoice_charge:{invoice.id}",
        content={"invoice_id": invoice.id, "amount_minor": invoice.amount_minor, "currency": invoice.currency},
        perform=lambda effect: (
            run.gateways.payment.charge(
                amount=invoice.amount_minor,
                currency=invoice.currency.lower(),
                customer=f"user-{invoice.user.id}",
                reference=invoice.number,
                idempotency_key=effect.idempotency_key,
            ).id
        ),
    )
    result: dict[str, Any] = {"invoice_id": invoice.id, "charged": True, "charge": effect.reference}
    with run.transaction(result) as connection:
        marked = mark_paid(connection, invoice.id, invoice.amount_minor, invoice.currency)
        if marked in (Marked.VOID, Marked.OTHER_AMOUNT):
            raise Permanent(
                f"invoice {invoice.number} was charged ({effect.reference}: {invoice.amount_minor} {invoice.currency}"
                f" minor units), and has changed meanwhile ({marked}): refund it, or correct the invoice by hand"
            )
    return None
