"""Mutants of queue/operations/: the changes of many runs, and how an operation is carried out."""

from __future__ import annotations

from tests.mutants.mutant import at

OPERATIONS = [
    *at(
        "operations/actions.py",
        "change_many",
        ("an operation changes other runs too", "id = ANY(%(run_ids)s::bigint[]) AND ", ""),
        ("an operation changes runs that do not allow it", " AND {step.guard}", ""),
        ("an operation changes runs that no longer match", " AND {MATCHES}", ""),
        (
            "an operation's change is not audited",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON false",
        ),
        (
            "an operation audits runs as each other",
            "FROM changed JOIN matching ON matching.id = changed.id",
            "FROM changed JOIN matching ON true",
        ),
    ),
    *at(
        "operations/actions.py",
        "IS_MEANT",
        ("an operation changes the run that carries it out", "job_type <> '{CARRY_OUT_OPERATION.name}'", "true"),
        ("an operation finds pruned runs", "pruned_at IS NULL", "true"),
        ("an operation asks a run to cancel twice", "cancel_requested_at IS NULL", "true"),
        ("an operation makes due runs due again", "run_at > now()", "true"),
    ),
    *at(
        "operations/request.py",
        "Requested",
        (
            "a change of all runs needs no confirmation",
            "self.criteria.leaves_all_open and not self.everything",
            "False",
        ),
    ),
    *at(
        "operations/batch.py",
        "change_batch",
        ("an operation makes runs due and wakes nobody", "fetch_all(connection, WAKE_WORKERS)", "pass"),
        ("a refusal is not kept", "refused[run_id] = reason", "pass"),
    ),
    *at(
        "operations/batch.py",
        "LOCK_MATCHING",
        ("a run that no longer matches is changed alone", " AND {MATCHES}", ""),
    ),
    *at(
        "operations/batch.py",
        "TRIED_AGAIN",
        ("one natural key that is taken prevents all retries", "UNIQUE_VIOLATION, ", ""),
    ),
    *at(
        "operations/batch.py",
        "_one",
        ("a locked run is an error", "(LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED)", "(DEADLOCK_DETECTED,)"),
    ),
    *at(
        "operations/carry_out.py",
        "carry_on",
        ("an operation that was stopped goes on", "status not in ACTIVE", "False"),
        ("a canary is a whole batch", "1 if status is OperationStatus.CANARY else batch", "batch"),
        ("an operation changes more runs than it may", "min(most, left or most)", "most"),
    ),
    *at(
        "operations/carry_out.py",
        "_next",
        ("an operation changes later runs", "_until(requested.narrowed, operation)", "requested.narrowed"),
    ),
    *at(
        "operations/carry_out.py",
        "SAVE_PROGRESS",
        ("the changes are not counted", "changed = changed + %(changed)s", "changed = changed"),
        ("an operation begins again", "cursor = %(cursor)s", "cursor = NULL"),
    ),
    *at(
        "operations/steer.py",
        "LOCK_OPERATION",
        ("an operation is changed by two at once", " FOR UPDATE", ""),
    ),
]
