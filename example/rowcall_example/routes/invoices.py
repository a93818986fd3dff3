"""/v1/invoices: ask for an invoice to be charged."""

from __future__ import annotations

from typing import Any

from rowcall_api.enqueue import Answer, answers_with_a_run, enqueue_and_answer
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.schemas.runs import EnqueueHeaders
from rowcall_example.business.invoices import invoice_with_user
from rowcall_example.job_types import CHARGE_INVOICE

blueprint = BodyBlueprint("invoices", __name__, url_prefix="/v1/invoices", description="Invoices that are to be paid.")


@blueprint.post("/<int:invoice_id>/charge")
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def charge_invoice(headers: dict[str, Any], invoice_id: int) -> Answer:
    """Charge an invoice by its customer's means of payment, and mark it as paid.

    Without an `Idempotency-Key` the invoice is the key. Under whichever key it is asked for, it is charged once.
    """
    return enqueue_and_answer(
        CHARGE_INVOICE.name,
        {"invoice_id": invoice_id},
        headers["idempotency_key"],
        must_exist=lambda connection: invoice_with_user(connection, invoice_id),
    )
