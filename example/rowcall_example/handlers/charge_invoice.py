"""charge_invoice: an invoice is paid by its customer's means of payment, once."""

from __future__ import annotations

from typing import Any

from rowcall import Permanent, Run
from rowcall_example.job_types import CHARGE_INVOICE
from rowcall_example.queries.invoices import Invoice, Marked, invoice_with_user, mark_paid


@CHARGE_INVOICE.handler
def charge_invoice(run: Run) -> dict[str, Any] | None:
    """Charge what the invoice asks for, then mark it as paid with the run's success."""
    with run.step() as connection:
        invoice = invoice_with_user(connection, run.payload["invoice_id"])
        begun = {effect["state"] for effect in run.effects(connection)} - {"refused"}
    # What an earlier attempt has charged for certain is looked at below, together with what has become of the invoice.
    if invoice.status != "open" and "applied" not in begun:
        return _nothing_to_charge(invoice, may_be_charged=bool(begun))
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
        charge = f"{effect.reference}: {invoice.amount_minor} {invoice.currency} minor units"
        # Where another run has charged it, it is that run's payment by which it is paid.
        if marked is Marked.ALREADY_PAID and effect.run_id == run.id:
            raise Permanent(
                f"invoice {invoice.number} was paid twice: by the charge of this run ({charge}), and by another payment"
                " before that was known: refund one of the two"
            )
        if marked in (Marked.VOID, Marked.OTHER_AMOUNT):
            raise Permanent(
                f"invoice {invoice.number} was charged ({charge}), and has changed meanwhile ({marked}): refund it,"
                " or correct the invoice by hand"
            )
    return None


def _nothing_to_charge(invoice: Invoice, may_be_charged: bool) -> dict[str, Any]:
    """The invoice is paid or void; loud where that is not all there is to know."""
    if may_be_charged:
        raise Permanent(
            f"invoice {invoice.number} is {invoice.status}, and nobody knows whether this run has charged it too: look"
            " for the charge at the payment provider, and refund it if it is there"
        )
    if invoice.status == "void":
        raise Permanent(f"invoice {invoice.number} is void: there is nothing to charge")
    return {"invoice_id": invoice.id, "charged": False, "reason": "it was paid before"}
