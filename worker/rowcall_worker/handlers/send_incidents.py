"""send_incidents: send one receiver a message about incidents that began or ended."""

from __future__ import annotations

from typing import Any

from rowcall import alerts
from rowcall.job_types.alerting import SEND_INCIDENTS
from rowcall_worker.attempt.context import Run


@SEND_INCIDENTS.handler
def send_incidents(run: Run) -> dict[str, Any]:
    """Send the message; another attempt uses the same id."""
    gateway = run.gateways.alerts
    receiver = gateway.receiver(run.payload["to"])
    with run.step() as connection:
        message = alerts.compose(connection, run.payload, gateway.environment, gateway.page)
    effect = run.effect(
        alerts.ALERT,
        key=f"alert-{run.id}",
        content={"to": run.payload["to"], "opened": run.payload["opened"], "ended": run.payload["ended"]},
        perform=lambda effect: gateway.send(receiver, message, effect.event_id, effect.message_id),
    )
    return {"subject": message.subject, "reference": effect.reference}
