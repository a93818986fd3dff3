"""charge_invoice: charge an invoice to its customer, once."""

from __future__ import annotations

from typing import Any

from rowcall import Permanent, Run
from rowcall_example.job_types import CHARGE_INVOICE
from rowcall_example.queries.invoices import Invoice, Marked, invoice_with_user, mark_paid


@CHARGE_INVOICE.handler
def charge_invoice(run: Run) -> dict[str, Any] | None:
    """Charge the invoice's amount, then mark the invoice as paid, together with the run's success."""
    with run.step() as connection:
        invoice = invoice_with_user(connection, run.payload["invoice_id"])
        begun = {effect["state"] for effect in run.effects(connection)} - {"refused"}
    # A charge that an earlier attempt is known to have made is handled below, with the invoice's current state.
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
        # If another run charged the invoice, that charge paid it.
        if marked is Marked.ALREADY_PAID and effect.run_id == run.id:
            raise Permanent(
                f"invoice {invoice.number} was paid twice: by the charge of this run ({charge}), and by another payment"
                " in the meantime: refund one of the two"
            )
        if marked in (Marked.VOID, Marked.OTHER_AMOUNT):
            raise Permanent(
                f"invoice {invoice.number} was charged ({charge}), but has changed since ({marked}): refund"
                " the charge, or correct the invoice by hand"
            )
    return None


def _nothing_to_charge(invoice: Invoice, may_be_charged: bool) -> dict[str, Any]:
    """Return why there is nothing to charge; raise an error if a person must look at it."""
    if may_be_charged:
        raise Permanent(
            f"invoice {invoice.number} is {invoice.status}, and it is not known whether this run has charged it too:"
            " look for the charge at the payment provider, and refund it if it exists"
        )
    if invoice.status == "void":
        raise Permanent(f"invoice {invoice.number} is void: there is nothing to charge")
    return {"invoice_id": invoice.id, "charged": False, "reason": "it was paid before"}
