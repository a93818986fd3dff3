"""Mutants of alerts/incidents.py, conditions.py and pings.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def alerting(file: str, place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Return mutants of one place of the alerts."""
    return [Mutant(name, f"shared/rowcall/alerts/{file}", place, stands, instead) for name, stands, instead in changes]


CHECKED_LATELY = "WHERE alert_checks.checked_at NOT BETWEEN now() - interval '{CHECK_SECONDS} seconds' AND now()"

ALERTS = [
    *alerting("incidents.py", "TURN", ("every worker checks", CHECKED_LATELY, "")),
    *alerting(
        "incidents.py",
        "TURN",
        ("a check in the future stops the checks", "NOT BETWEEN now() - interval", "< now() - interval"),
    ),
    *alerting(
        "incidents.py",
        "CHANGED",
        ("an incident ends at once", "AND seen_at NOT BETWEEN now() - {CALM} AND now()", ""),
        ("an incident ends while its alert is active", "AND active.subject = incidents.subject", "AND false"),
        ("what is not checked ends", "AND alert = ANY(%(checked)s::text[])", ""),
        ("an incident is not seen again", "SET seen_at = now(), details = active.details", "SET details = details"),
    ),
    *alerting(
        "conditions.py",
        "DIED",
        ("a run that was retried is told", "AND run.status = '{Status.DEAD}'", ""),
        ("messages are told by messages", "AND run.job_type <> '{SEND_INCIDENTS.name}'", ""),
        ("an app tells of another app's types", "run.job_type = ANY(other.own_types)", "false"),
    ),
    *alerting(
        "conditions.py",
        "FAILING",
        ("few failures are told", ">= {FAILED_LEAST}", ">= 1"),
        ("a few of very many failures are told", "2 * sum(failed + dead)", "99 * sum(failed + dead)"),
    ),
    *alerting(
        "conditions.py",
        "OVERDUE",
        ("a run whose message waits is not told", "OR {UNBEGUN}", ""),
    ),
    *alerting("pings.py", "ASK", ("a ping is enqueued at each look", "'55 seconds'", "'0 seconds'")),
    *alerting(
        "pings.py",
        "IS_WELL",
        (
            "the switch is called although finishes are refused",
            "pings.finished_at BETWEEN now() - {WELL} AND now()",
            "true",
        ),
        (
            "the switch is called although nobody ticks",
            "AND schedule_ticks.ticked_at BETWEEN now() - interval '{SILENCE_SECONDS} seconds' AND now()",
            "",
        ),
        (
            "the switch is called although nobody checks the alerts",
            "OR alert_checks.checked_at BETWEEN now() - {WELL} AND now()",
            "OR true",
        ),
    ),
    *alerting("pings.py", "FINISHED", ("pings pile up", "job_runs.id = before.run_id", "false")),
]
