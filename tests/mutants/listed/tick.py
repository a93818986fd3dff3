"""Mutants of definitions/tick.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def ticking(place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Mutants of one place of the tick."""
    return [
        Mutant(name, "shared/rowcall/definitions/tick.py", place, stands, instead) for name, stands, instead in changes
    ]


TICK = [
    *ticking("DUE", ("types that are not known here are decided", "job_type = ANY(%(job_types)s::text[])", "true")),
    *ticking("LIVE", ("a run that has ended counts as under way", " AND finished_at IS NULL", "")),
    *ticking(
        "OCCUR",
        ("what was decided is decided again", "known.nominal_at = decided.nominal_at", "false"),
        ("what is not to run runs", "WHERE outcome = '{Outcome.ENQUEUED}' ORDER BY", "ORDER BY"),
        ("a fact that has a run is an error", "ON CONFLICT DO NOTHING", ""),
        (
            "runs come without their nominal time",
            "SELECT %(definition_id)s, nominal_at,",
            "SELECT %(definition_id)s, NULL,",
        ),
        (
            "runs come without their jitter",
            "payload, %(queue)s, %(priority)s, run_at,",
            "payload, %(queue)s, %(priority)s, now(),",
        ),
        ("runs come without their key", "key, fingerprint,", "NULL, fingerprint,"),
        (
            "a fact that has a run is told as enqueued",
            "THEN '{Outcome.SKIPPED}' ELSE new.outcome",
            "THEN new.outcome ELSE new.outcome",
        ),
    ),
    *ticking("MOVE_ON", ("another definition moves on", "WHERE id = %(definition_id)s", "WHERE true")),
    *ticking(
        "BEAT",
        ("an idle tick writes each time", " WHERE ticked_at < now() - interval '10 seconds'", ""),
        ("the silence before is forgotten", "before.ticked_at AS before", "schedule_ticks.ticked_at AS before"),
    ),
    *ticking("NEXT_DUE", ("the next time is not the first", "min(next_run_at)", "max(next_run_at)")),
    *ticking("decide_definition", ("overlap is not looked for", "if rule.overlap is Overlap.SKIP", "if False")),
    *ticking("settle", ("a change decides nothing of what came before", "if due and", "if False and")),
]
