"""Mutants of definitions/tick.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def ticking(place: str, *changes: tuple[str, str, str]) -> list[Mutant]:
    """Return mutants of one place of the tick."""
    return [
        Mutant(name, "shared/rowcall/definitions/tick.py", place, stands, instead) for name, stands, instead in changes
    ]


TICK = [
    *ticking("DUE", ("unknown types are decided", "job_type = ANY(%(job_types)s::text[])", "true")),
    *ticking(
        "RESTING",
        (
            "a fixed definition is still skipped",
            "(id, revision) IN (SELECT resting.id, resting.revision",
            "id IN (SELECT resting.id",
        ),
    ),
    *ticking("DUE", ("a broken definition is prepared at each tick", "AND NOT {RESTING}", "")),
    *ticking("NEXT_DUE", ("a tick waits for a broken definition", "AND NOT {RESTING}", "")),
    *ticking("settle", ("an edit leaves times undecided", "patience=timedelta(0)", "patience=PATIENCE")),
    *ticking(
        "decide_definition",
        ("a time that was left undecided is skipped", "if written.left is None", "if True"),
    ),
    *[
        Mutant(name, "shared/rowcall/definitions/occurrences.py", "with_runs", stands, instead)
        for name, stands, instead in (
            ("an older worker marks as missed what a newer one accepts", "decision.nominal > patient_since", "False"),
            ("a time that nobody accepts is never missed", "decision.nominal > patient_since", "True"),
        )
    ],
    *[
        Mutant(name, "shared/rowcall/definitions/broken.py", "breaking", stands, instead)
        for name, stands, instead in (
            (
                "one definition's error stops the worker",
                "except BaseException as error:",
                "except RowcallError as error:",
            ),
        )
    ],
    *ticking("LIVE", ("a finished run counts as live", " AND finished_at IS NULL", "")),
    *ticking(
        "OCCUR",
        ("a decided time is decided again", "known.nominal_at = decided.nominal_at", "false"),
        ("skipped and missed times run", "WHERE outcome = '{Outcome.ENQUEUED}' ORDER BY", "ORDER BY"),
        ("a natural key that is taken is an error", "ON CONFLICT DO NOTHING", ""),
        (
            "runs have no nominal time",
            "SELECT %(definition_id)s, nominal_at,",
            "SELECT %(definition_id)s, NULL,",
        ),
        (
            "runs have no jitter",
            "payload, %(queue)s, %(priority)s, run_at,",
            "payload, %(queue)s, %(priority)s, now(),",
        ),
        ("runs have no natural key", "natural_key, %(unique_mode)s,", "NULL, %(unique_mode)s,"),
        (
            "a natural key that is taken is recorded as enqueued",
            "THEN '{Outcome.SKIPPED}' ELSE new.outcome",
            "THEN new.outcome ELSE new.outcome",
        ),
    ),
    *ticking("MOVE_ON", ("another definition moves on too", "WHERE id = %(definition_id)s", "WHERE true")),
    *ticking(
        "BEAT",
        ("an idle tick writes every time", "worker IS NULL OR ticked_at < now() - interval '10 seconds'", "true"),
        ("the first tick is not recorded at once", "worker IS NULL OR ", ""),
        ("the time of the last tick is lost", "before.ticked_at AS before", "schedule_ticks.ticked_at AS before"),
    ),
    *ticking("NEXT_DUE", ("the next time is not the first", "min(next_run_at)", "max(next_run_at)")),
    *ticking("decide_definition", ("overlap is not checked", "if rule.overlap is Overlap.SKIP", "if False")),
    *ticking("settle", ("an edit does not decide earlier times", "if due and", "if False and")),
]
