"""Where emails go, and who receives alerts."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.base.database import PgConnection, fetch_one
from rowcall.base.settings import Settings
from rowcall.cli.doctor.finding import Finding
from rowcall.cli.terminal.output import shown
from rowcall.job_types.alerting import NO_RECEIVERS, SEND_INCIDENTS, receivers_by_label
from rowcall.job_types.catalogue import Catalogue
from rowcall.job_types.declaration import PRIORITY_FIRST
from rowcall.status import Status


def emails(settings: Settings) -> Finding:
    """Say where emails go, because without a mail server they are not sent."""
    if settings.smtp is None:
        message = f"written to {settings.mail_folder}, not sent: set ROWCALL_SMTP_URL to send them"
        return Finding("emails", True, message)
    return Finding("emails", True, f"will be sent through {settings.smtp.host} (not tried)")


# How old the last check must be before something is wrong, and how recent a tick must be to show that a worker runs.
UNCHECKED = """
SELECT checked_at FROM rowcall.schedule_ticks
LEFT JOIN (SELECT max(checked_at) AS checked_at FROM rowcall.alert_checks WHERE checked_at <= now()) AS checks ON true
WHERE coalesce(checked_at, '-infinity') < now() - interval '6 minutes'
    AND ticked_at > now() - interval '1 minute' AND worker IS NOT NULL
"""


def unchecked(connection: PgConnection, settings: Settings, catalogue: Catalogue) -> Iterator[Finding]:
    """Find workers that tick but do not check the alerts that are set here."""
    if not receivers_by_label(settings, catalogue):
        return
    row = fetch_one(connection, UNCHECKED)
    if row is not None:
        last = row["checked_at"]
        since = "workers tick, but none has ever checked them" if last is None else f"last checked at {shown(last)}"
        remedy = "set ROWCALL_ALERT_EMAILS or ROWCALL_ALERT_WEBHOOKS for all workers, and look for `alerts refused` in"
        yield Finding("alerts", False, f"{since}: {remedy} their logs")


# Messages that failed and will be tried again; the index job_runs_live.
UNSENT = f"""
SELECT count(*) AS runs, (array_agg(last_error ORDER BY failed_at DESC))[1] AS error FROM rowcall.job_runs
WHERE finished_at IS NULL AND queue = '{SEND_INCIDENTS.queue}' AND priority = {PRIORITY_FIRST}
    AND status = '{Status.FAILED}' AND job_type = '{SEND_INCIDENTS.name}'
"""


def unsent(connection: PgConnection) -> Iterator[Finding]:
    """Find messages about alerts that could not be sent."""
    row = fetch_one(connection, UNSENT)
    if row is not None and row["runs"]:
        waiting = "1 message is" if row["runs"] == 1 else f"{row['runs']} messages are"
        listed = f"`rowcall runs list --type {SEND_INCIDENTS.name} --status failed` lists them"
        yield Finding("alerts", False, f"{waiting} not sent yet: {row['error']}; {listed}")


def alerts(settings: Settings, catalogue: Catalogue) -> Finding:
    """Say who receives alerts, and whether emails to them are sent."""
    told = receivers_by_label(settings, catalogue)
    if not told:
        return Finding("alerts", True, NO_RECEIVERS)
    if settings.smtp is None and settings.alert_emails:
        message = "emails to the receivers of alerts are written to files, not sent: set ROWCALL_SMTP_URL"
        return Finding("alerts", False, message)
    of_all = ", ".join(receiver.label for receiver in settings.alert_receivers)
    sent = f"sent to {of_all}" if of_all else "only sent about dead runs, to the receivers in on_dead of job types"
    return Finding("alerts", True, f"{sent}; `rowcall alerts test` sends a test")


LAST_PING = """
SELECT finished_at, finished_at < now() - interval '10 minutes' AS late FROM rowcall.pings WHERE definition_id = 0
"""


def switch(connection: PgConnection, settings: Settings) -> Finding:
    """Say whether a dead man's switch is set, and when its last ping finished."""
    if settings.ping_url is None:
        unset = "not set: nobody notices if everything stops working; to set one, set ROWCALL_PING_URL for all workers"
        return Finding("dead man's switch", True, unset)
    host, last = settings.ping_url.host, fetch_one(connection, LAST_PING)
    if last is None or last["finished_at"] is None:
        return Finding("dead man's switch", True, f"{host} will be called every minute; no ping has finished yet")
    since = f"the last ping finished at {shown(last['finished_at'])}"
    if last["late"]:
        remedy = "check that a worker runs, and that ROWCALL_PING_URL is set for all workers"
        return Finding("dead man's switch", False, f"{host} is not called: {since}; {remedy}")
    return Finding("dead man's switch", True, f"{host} is called every minute; {since}")
