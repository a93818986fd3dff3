"""Mutants of queue/enqueue.py."""

from __future__ import annotations

from tests.mutants.mutant import at

ENQUEUE = [
    *at(
        "enqueue.py",
        "INSERT",
        (
            "a key is written down as who asked",
            "idempotency_key, request_fingerprint, created_by,\n     status)",
            "created_by, request_fingerprint, idempotency_key,\n     status)",
        ),
    ),
    *at(
        "enqueue.py",
        "UNLESS_KEY_IS_TAKEN",
        (
            "a second run for one key is tried",
            "ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
            "",
        ),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_ONE",
        ("a key is not kept", "%(key)s", "NULL"),
        ("every run is due at once", "coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now())", "now()"),
    ),
    *at(
        "enqueue.py",
        "ENQUEUE_MANY",
        ("of many the keys are not kept", "%(max_attempts)s, request.key,", "%(max_attempts)s, NULL,"),
        ("keys are locked in the order of payloads", 'ORDER BY request.key COLLATE pg_catalog."C", ', "ORDER BY "),
        ("many are due at once", "coalesce(%(run_at)s::pg_catalog.timestamptz, pg_catalog.now())", "now()"),
    ),
    *at(
        "enqueue.py",
        "outcomes_of",
        ("a key stands for any content", "if fingerprint != request.fingerprint:", "if False:"),
        ("a replay is said to be new", "replayed=True", "replayed=False"),
    ),
    *at(
        "enqueue.py",
        "fingerprint_of",
        ("another payload is the same content", "[job_type, payload, options]", "[job_type, options]"),
        ("other options are the same content", "[job_type, payload, options]", "[job_type, payload]"),
    ),
    *at(
        "enqueue.py",
        "_enqueued",
        ("of many with a conflict some are kept", "with all_or_nothing(connection):", "if True:"),
    ),
    *at(
        "enqueue.py",
        "stored_text",
        ("payloads of any size are stored", "if size > PAYLOAD_BYTES:", "if False:"),
        ("payloads are measured as they are sent", "size_of(text)", "len(text.encode())"),
    ),
    *at("enqueue.py", "checked_key", ("keys of any length are stored", "0 < len(key) <= KEY_CHARACTERS", "True")),
    *at("enqueue.py", "checked_key", ("keys of any characters are stored", "or not key.isprintable()", "")),
    *at(
        "enqueue.py",
        "check_options",
        ("queues of any name are taken", 'not NAME.fullmatch(options["queue"])', "False"),
        ("priorities beyond the column are tried", 'not -32768 <= options["priority"] <= 32767', "False"),
        ("any number of attempts is taken", 'not 1 <= options["max_attempts"] <= 1000', "False"),
    ),
]
