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
    *ticking(
        "RESTING",
        (
            "a mended definition rests on",
            "(id, revision) IN (SELECT resting.id, resting.revision",
            "id IN (SELECT resting.id",
        ),
    ),
    *ticking("DUE", ("a broken definition is prepared at each tick", "AND NOT {RESTING}", "")),
    *ticking("NEXT_DUE", ("a broken definition is what a tick waits for", "AND NOT {RESTING}", "")),
    *ticking("settle", ("an edit leaves times undecided", "patience=timedelta(0)", "patience=PATIENCE")),
    *ticking(
        "decide_definition",
        ("a time that was left is passed by", "if written.left is None", "if True"),
    ),
    *[
        Mutant(name, "shared/rowcall/definitions/occurrences.py", "with_runs", stands, instead)
        for name, stands, instead in (
            ("an older worker calls missed what a newer one accepts", "decision.nominal > patient_since", "False"),
            ("what nobody accepts is never missed", "decision.nominal > patient_since", "True"),
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
        ("runs come without their key", "natural_key, %(unique_mode)s,", "NULL, %(unique_mode)s,"),
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
