"""Mutants of queue/clone.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CLONE = [
    *at(
        "clone.py",
        "CLONE",
        ("clone copies other runs too", "WHERE id = %(run_id)s", "WHERE id >= %(run_id)s"),
        ("clone copies a pruned run", " AND pruned_at IS NULL", ""),
        ("clone ignores the new payload", "coalesce(%(payload)s::jsonb, payload)", "payload"),
        ("a clone is due at once, although a time was given", "coalesce(%(run_at)s::timestamptz, now())", "now()"),
        ("a clone has no key", "%(content_fingerprint)s, %(key)s", "%(content_fingerprint)s, NULL"),
        ("a clone has no natural key", "%(natural_key)s", "NULL"),
        ("a clone's natural key is unique for ever", "%(unique_mode)s", "'ever'"),
        (
            "a clone's key belongs to all callers",
            "%(key_owner)s, %(request_fingerprint)s",
            "'app', %(request_fingerprint)s",
        ),
        (
            "a clone takes the key that another run has besides",
            "WHERE idempotency_key = %(key)s AND",
            "WHERE false AND",
        ),
        ("a clone misses a key of another caller", " AND key_owner = %(key_owner)s", ""),
    ),
    *at(
        "clone.py",
        "clone",
        ("a clone is not audited", 'record(connection, operator.who, "clone"', '(connection, operator.who, "clone"'),
        ("clone copies a run that has changed since it was read", "check_version(run, expected)", "pass"),
        ("a refused clone is kept", "with all_or_nothing(connection):", "if True:"),
    ),
    *at(
        "clone.py",
        "_keys",
        ("a clone of another run has the same fingerprint", "f\"clone of {run['id']}\"", '"clone"'),
        ("a clone with a new payload has the first natural key", 'if options["payload"] is not None:', "if False:"),
    ),
    *at(
        "operate.py",
        "_changed",
        ("a key whose run has finished is not tried again", "range(TRIES)", "range(1)"),
        (
            "a retry reports the database's error",
            "if sqlstate_of(error) != UNIQUE_VIOLATION:",
            "if True:",
        ),
    ),
]
