"""Watch: check the alerts when it is this worker's turn, and enqueue messages to the receivers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from rowcall.alerts.conditions import CONDITIONS, Alert, Limits, true_now
from rowcall.alerts.incidents import Change, changed, takes_turn
from rowcall.alerts.intervals import Interval
from rowcall.base.database import Connection, PgConnection, Row
from rowcall.base.logs import LogEvent, log
from rowcall.base.receivers import Receiver, unique
from rowcall.base.settings import Settings
from rowcall.job_types import Catalogue
from rowcall.job_types.alerting import SEND_INCIDENTS
from rowcall.job_types.declaration import PRIORITY_FIRST
from rowcall.queue import enqueue_many
from rowcall.queue.workers import silence


def refused(error: str) -> None:
    """Log that the database refused a check."""
    log().error(LogEvent.ALERTS_REFUSED, error=error)


@dataclass
class Watch:
    """The alerts that this process checks, and their receivers; at each interval it asks whether it is its turn."""

    catalogue: Catalogue
    receivers: Sequence[Receiver]
    limits: Limits
    interval: Interval
    alerts: frozenset[Alert] = field(init=False)

    def __post_init__(self) -> None:
        """If there are no receivers of all alerts, check only for dead runs, for the receivers of job types."""
        told = any(job_type.on_dead_receivers for job_type in self.catalogue.values())
        self.alerts = frozenset(CONDITIONS) if self.receivers else frozenset({Alert.RUN_DIED} if told else ())

    @classmethod
    def of(cls, settings: Settings, catalogue: Catalogue, pause: float) -> Watch:
        """A watch with the receivers and limits of these settings."""
        limits = Limits(settings.alert_due, silence(settings.heartbeat), settings.app or "")
        return cls(catalogue, settings.alert_receivers, limits, Interval(pause, refused))

    def check(self, connection: PgConnection) -> None:
        """Check the alerts if it is this worker's turn; one transaction changes incidents and enqueues messages.

        If the check is refused, perhaps because the grants are older than the table, the schedules must go on.
        """
        if not self.alerts or not self.interval.is_over():
            return
        changes: list[Row] = []
        with self.interval.checking(connection):
            changes = self._check(connection)
        for row in changes:
            told = {"incident_id": row["id"], "alert": row["alert"], "subject": row["subject"]}
            if row["change"] == Change.OPENED:
                log().warning(LogEvent.INCIDENT_OPENED, **told)
            else:
                log().info(LogEvent.INCIDENT_ENDED, **told)

    def _check(self, connection: PgConnection) -> list[Row]:
        own_types = [name for name, job_type in self.catalogue.items() if job_type.on_dead_receivers]
        if not takes_turn(connection, self.limits.app, own_types):
            return []
        active = [one for one in true_now(connection, self.alerts, self.limits) if self._receivers_of(*one[:2])]
        only_types = None if self.receivers else own_types
        changes = changed(connection, active, self.alerts, self.limits.app, only_types)
        self._enqueue(connection, changes)
        return changes

    def _enqueue(self, connection: Connection, changes: Sequence[Row]) -> None:
        """Enqueue one message for each receiver, whatever the number of incidents."""
        messages: dict[str, dict[str, list[int]]] = defaultdict(lambda: {change: [] for change in Change})
        for row in changes:
            for receiver in self._receivers_of(row["alert"], row["subject"]):
                messages[receiver.label][row["change"]].append(row["id"])
        payloads = [{"to": label, **those} for label, those in messages.items()]
        if payloads:
            enqueue_many(connection, SEND_INCIDENTS, payloads, priority=PRIORITY_FIRST, created_by="alerts")

    def _receivers_of(self, alert: str, subject: str) -> Sequence[Receiver]:
        """Return the receivers: for dead runs, those of the job type if it has any; for a test, all."""
        if alert == Alert.TEST:
            of_types = [receiver for kind in self.catalogue.values() for receiver in kind.on_dead_receivers]
            return unique([*self.receivers, *of_types])
        if alert == Alert.RUN_DIED and subject in self.catalogue:
            return self.catalogue[subject].on_dead_receivers or self.receivers
        return self.receivers
