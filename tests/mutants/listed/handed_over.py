"""Mutants of queue/views/handed_over.py."""

from __future__ import annotations

from tests.mutants.mutant import at

HANDED_OVER = [
    *at(
        "views/handed_over.py",
        "HANDED_OVER",
        (
            "runs of workers count as handed over",
            """
        AND (starts_with(locked_by, '{MESSAGE}') OR starts_with(locked_by, '{CONSUMER}'))""",
            "",
        ),
        ("messages that wait are not seen", "starts_with(locked_by, '{MESSAGE}') OR ", ""),
        ("one late row makes a consumer silent", "max(updated_at) AS heartbeat_at", "min(updated_at) AS heartbeat_at"),
        ("the first lease that expires is shown", "max(locked_until)", "min(locked_until)"),
        (
            "a consumer with short leases has the interval of the settings",
            "least(%(heartbeat)s, extract(epoch FROM min(locked_until - updated_at)) / 3)",
            "%(heartbeat)s",
        ),
        (
            "a consumer with long leases may be silent for a third of them",
            "least(%(heartbeat)s, extract(epoch FROM min(locked_until - updated_at)) / 3)",
            "(extract(epoch FROM min(locked_until - updated_at)) / 3)",
        ),
        (
            "a consumer that renews no lease is alive",
            "heartbeat_at > now() - {MISSED_INTERVALS} *",
            "now() > now() - 1 *",
        ),
        ("the list has no end", "place <= {HOLDERS_MOST} AND ", ""),
    ),
    *at(
        "views/workers.py",
        "RUNNING",
        ("whole lanes are read for what is running", " LIMIT {SCANNED_MOST}", ""),
        ("the shortest running come first", "ORDER BY started_at, id)", "ORDER BY started_at DESC, id)"),
    ),
    *at("views/workers.py", "RUNS", ("all runs of a worker are shown", " FILTER (WHERE nth <= {RUNS_MOST})", "")),
]
