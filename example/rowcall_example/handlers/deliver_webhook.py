"""deliver_webhook: deliver an event at least once, always under the same id."""

from __future__ import annotations

from typing import Any

from rowcall import Run
from rowcall_example.job_types import DELIVER_WEBHOOK


@DELIVER_WEBHOOK.handler
def deliver_webhook(run: Run) -> dict[str, Any]:
    """Deliver the event, with a new signature for each attempt."""
    event_id, url, body = (run.payload[name] for name in ("event_id", "url", "body"))

    def deliver(_: object) -> dict[str, Any]:
        answer = run.gateways.webhook.deliver(url=url, event_id=event_id, payload=body)
        return {"reference": answer, "response_status": int(answer.removeprefix("HTTP "))}

    effect = run.effect("delivered_webhooks", key=event_id, content={"url": url, "body": body}, perform=deliver)
    return {"event_id": event_id, "answer": effect.reference}
