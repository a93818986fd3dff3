"""Pings: calls of the dead man's switch, and of the services that definitions name."""

from __future__ import annotations

import uuid

from rowcall.base.endpoints import HttpUrl
from rowcall.base.settings import Settings
from rowcall.job_types.alerting import PingEvent
from rowcall_worker.gateways.webhook import Webhook

# The answer to a ping is not worth waiting for.
TIMEOUT_SECONDS = 10.0

# Healthchecks matches a run's start and end by a UUID, which is the same in every attempt of a run.
RUNS = uuid.UUID("7c1d9f5e-2f0b-5f0e-9a54-6a0f0f3f3a11")


class Pings:
    """Calls of the switch that the operator set, and of URLs in definitions, which others may have chosen."""

    def __init__(self, settings: Settings) -> None:
        self.own = settings.ping_url
        # The app whose alerts the switch vouches for; None if this worker has no receivers of alerts.
        self.checking = (settings.app or "") if settings.alert_receivers else None
        loopback = settings.webhook_allow_loopback
        self._trusted = Webhook((), allow_loopback=True, timeout=TIMEOUT_SECONDS, trusted=True)
        self._others = Webhook((), allow_loopback=loopback, timeout=TIMEOUT_SECONDS)

    def alive(self, url: HttpUrl) -> str:
        """Call the switch; return how the call was accepted."""
        return self._trusted.ping(str(url))

    def of_run(self, url: str, event: PingEvent, run_id: int) -> str:
        """Tell a definition's service about a run, as Healthchecks expects; return how the call was accepted.

        A URL on the switch's own server is trusted like the switch; any other must be public, as for webhooks.
        """
        target = HttpUrl.parse(url)
        gateway = self._trusted if self.own is not None and self.own.origin == target.origin else self._others
        if event is not PingEvent.SUCCESS:
            target = target.below(event)
        return gateway.ping(str(target.asking("rid", str(uuid.uuid5(RUNS, str(run_id))))))
