"""/v1/invoices: enqueue the charge of an invoice."""

from __future__ import annotations

from typing import Any

from werkzeug.exceptions import NotFound

from rowcall_api.app_routes import Answer, Blueprint, EnqueueHeaders, answers_with_a_run, enqueue_and_answer, needs
from rowcall_example.errors import InvoiceNotFound
from rowcall_example.job_types import CHARGE_INVOICE
from rowcall_example.queries.invoices import invoice_with_user
from rowcall_example.sql import Connection

blueprint = Blueprint("invoices", __name__, url_prefix="/v1/invoices", description="Payment of invoices.")


@blueprint.post("/<int:invoice_id>/charge")
@blueprint.arguments(EnqueueHeaders, location="headers")
@answers_with_a_run(blueprint)
@needs("enqueue")
def charge_invoice(headers: dict[str, Any], invoice_id: int) -> Answer:
    """Charge an invoice to its customer, and mark it as paid.

    Without an `Idempotency-Key`, the invoice is the key. It is charged only once, under any key.
    """

    def must_exist(connection: Connection) -> None:
        try:
            invoice_with_user(connection, invoice_id)
        except InvoiceNotFound as error:
            raise NotFound(str(error)) from None

    payload = {"invoice_id": invoice_id}
    return enqueue_and_answer(CHARGE_INVOICE.name, payload, headers["idempotency_key"], must_exist)
