"""Its handler."""

from __future__ import annotations

from rowcall import Run
from tests.bench.effect_app.job_types import SMS, TEXT


@TEXT.handler
def text(run: Run) -> None:
    """Send nothing, once."""
    order_id = run.payload["order_id"]
    run.effect(SMS, key=f"order:{order_id}", content={"order_id": order_id}, perform=lambda _: None)
