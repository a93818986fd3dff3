"""Mutants of queue/enqueue.py."""

from __future__ import annotations

from tests.mutants.mutant import at

ENQUEUE = [
    *at(
        "enqueue.py",
        "INSERT",
        (
            "a key is stored as the creator",
            "idempotency_key, key_owner, request_fingerprint, created_by, status)",
            "created_by, key_owner, request_fingerprint, idempotency_key, status)",
        ),
    ),
    *at(
        "enqueue.py",
        "UNLESS_A_KEY_IS_TAKEN",
        ("a second run for one key is inserted", "ON CONFLICT DO NOTHING", ""),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_ONE",
        ("a key is not stored", "%(key)s", "NULL"),
        ("a natural key is not stored", "%(natural_key)s", "NULL"),
        ("natural keys of every type are unique for ever", "%(unique_mode)s", "'ever'"),
        ("all callers share one namespace", "%(key_owner)s", "'app'"),
        ("every run is due at once", "coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now())", "now()"),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_MANY",
        ("enqueue_many does not store keys", "request.key, %(key_owner)s", "NULL, %(key_owner)s"),
        ("enqueue_many does not store natural keys", "request.natural_key, %(unique_mode)s", "NULL, %(unique_mode)s"),
        ("enqueue_many does not store unique modes", "%(unique_mode)s", "'ever'"),
        ("enqueue_many: all callers share one namespace", "%(key_owner)s", "'app'"),
        ("natural keys are locked in any order", 'ORDER BY request.natural_key COLLATE pg_catalog."C", ', "ORDER BY "),
        ("keys are locked in the order of payloads", 'request.key COLLATE pg_catalog."C", ', ""),
        (
            "enqueue_many makes every run due at once",
            "coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now())",
            "now()",
        ),
    ),
    *at("enqueue.py", "outcomes_of", ("a replay is reported as new", "replayed=known", "replayed=False")),
    *at(
        "holders.py",
        "FIND_HOLDERS",
        ("a run of another type holds a natural key", "job_type OPERATOR(pg_catalog.=) %(job_type)s AND ", ""),
        ("another caller's request is replayed", "key_owner OPERATOR(pg_catalog.=) %(key_owner)s AND ", ""),
    ),
    *at(
        "holders.py",
        "replayed",
        ("a key is replayed with any content", "if request.fingerprint == keys.request_fingerprint:", "if True:"),
        ("a natural key is replayed with any content", "if fact.fingerprint != keys.content_fingerprint:", "if False:"),
        (
            "the other run is not named",
            "if fact is not None and fact.run_id != request.run_id else",
            "if False else",
        ),
    ),
    *at(
        "enqueue.py",
        "fingerprint_of",
        ("another payload has the same fingerprint", "[subject, content, options]", "[subject, options]"),
        ("other options have the same fingerprint", "[subject, content, options]", "[subject, content]"),
    ),
    *at(
        "enqueue.py",
        "sent_of",
        (
            "defaults count as sent",
            "for name, value in sent.items() if name in stored",
            "for name, value in {**stored, **sent}.items() if name in stored",
        ),
        ("defaults in items of a list count as sent", "len(stored) == len(sent)", "False"),
    ),
    *at(
        "enqueue.py",
        "_enqueued",
        ("after a conflict, enqueue_many keeps some runs", "with all_or_nothing(connection):", "if True:"),
    ),
    *at(
        "enqueue.py",
        "stored_text",
        ("payloads of any size are stored", "if size > PAYLOAD_BYTES:", "if False:"),
        ("payloads are measured as sent", "size_of(text)", "len(text.encode())"),
    ),
    *at("holders.py", "_is_key", ("keys of any length are stored", "0 < len(key) <= KEY_CHARACTERS", "True")),
    *at("holders.py", "_is_key", ("keys of any characters are stored", " and key.isprintable()", "")),
    *at(
        "enqueue.py",
        "check_options",
        ("queues of any name are accepted", 'NAME.fullmatch(options["queue"])', "True"),
        (
            "priorities out of the column's range are tried",
            'not PRIORITY_FIRST <= options["priority"] <= PRIORITY_LAST',
            "False",
        ),
        ("any number of attempts is accepted", "not 1 <= most <= ATTEMPTS_MOST", "False"),
    ),
]
