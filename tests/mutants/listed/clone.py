"""Mutants of queue/clone.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CLONE = [
    *at(
        "clone.py",
        "CLONE",
        ("clone takes other runs too", "WHERE id = %(run_id)s", "WHERE id >= %(run_id)s"),
        ("clone of what was pruned", " AND pruned_at IS NULL", ""),
        ("a clone's own payload is not taken", "coalesce(%(payload)s::jsonb, payload)", "payload"),
        ("a clone is due at once though it was to wait", "coalesce(%(run_at)s::timestamptz, now())", "now()"),
        ("a clone keeps no key", "%(key)s", "NULL"),
        ("a clone has no natural key", "%(natural_key)s", "NULL"),
        ("a clone's fact is unique for ever", "%(unique_mode)s", "'ever'"),
        ("a clone's key is everybody's", "%(key_owner)s", "'app'"),
    ),
    *at(
        "clone.py",
        "clone",
        ("a clone is not audited", 'record(connection, operator.who, "clone"', '(connection, operator.who, "clone"'),
        ("a clone is made of what was not seen", "check_version(run, expected)", "pass"),
        ("a clone that is refused is kept", "with all_or_nothing(connection):", "if True:"),
    ),
    *at(
        "clone.py",
        "_keys",
        ("a clone of another run is the same content", "f\"clone of {run['id']}\"", '"clone"'),
        ("another payload has the fact of the first", 'if options["payload"] is not None:', "if False:"),
    ),
    *at(
        "operate.py",
        "_changed",
        ("a key whose holder has ended is not tried again", "range(TRIES)", "range(1)"),
        (
            "a retry tells what the database said",
            "if sqlstate_of(error) != UNIQUE_VIOLATION:",
            "if True:",
        ),
    ),
    *at(
        "bulk.py",
        "_changed",
        ("one taken fact keeps all from being retried", "if len(run_ids) == 1:", "if True:"),
        ("who waits in a circle fails", "(UNIQUE_VIOLATION, DEADLOCK_DETECTED)", "(UNIQUE_VIOLATION,)"),
    ),
]
