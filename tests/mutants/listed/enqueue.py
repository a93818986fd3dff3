"""Mutants of queue/enqueue.py."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, at

IS_A_KIND = "next((kind for own, kind in TYPES.items() if isinstance(field, own)), None)"

ENQUEUE = [
    *at(
        "keys/insert.py",
        "INSERT",
        (
            "a key is stored as the creator",
            "idempotency_key, key_owner, request_fingerprint, created_by, trace_parent, status)",
            "created_by, key_owner, request_fingerprint, idempotency_key, trace_parent, status)",
        ),
    ),
    *at(
        "keys/insert.py",
        "UNLESS_A_KEY_IS_TAKEN",
        ("a second run for one key is inserted", "ON CONFLICT DO NOTHING", ""),
    ),
    *at(
        "keys/insert.py",
        "COLUMNS_OF_ONE",
        ("a natural key is not stored", "%(natural_key)s", "NULL"),
        ("natural keys of every type are unique for ever", "%(unique_mode)s", "'ever'"),
        ("a key is not stored", "%(key)s", "NULL"),
        ("all callers share one namespace", "%(key_owner)s", "'app'"),
        ("every run is due at once", "{DUE_AT}", "now()"),
    ),
    *at(
        "keys/insert.py",
        "ENQUEUE_ONE_WITH_KEY",
        ("a remembered key enqueues a run", "NOT EXISTS (", "EXISTS (SELECT) OR EXISTS ("),
        (
            "a key that is remembered for another caller is taken",
            " AND key_owner OPERATOR(pg_catalog.=) %(key_owner)s",
            "",
        ),
    ),
    *at(
        "keys/insert.py",
        "RESERVE",
        ("a key is reserved for the caller's name", "(idempotency_key, key_owner,", "(key_owner, idempotency_key,"),
    ),
    *at(
        "keys/insert.py",
        "RESERVE_AND_ENQUEUE_ONE",
        ("all callers reserve in one namespace", "SELECT %(key)s, %(key_owner)s", "SELECT %(key)s, 'app'"),
        ("a reserved key has another run", "SELECT request.id,", "SELECT {NEXT_ID},"),
        ("a run with a taken key is inserted", "JOIN reserved", "LEFT JOIN reserved"),
        ("a run that waited for its key has the time after that", "request.created_at,", "{TIME},"),
    ),
    *at(
        "keys/insert.py",
        "reserves",
        ("no key is reserved", "return keys.key is not None", "return False and keys.key is not None"),
        ("keys of facts that nothing can release are reserved", 'unique_mode != "ever"', "True"),
        ("only keys of live facts are reserved", 'unique_mode != "ever"', 'unique_mode == "live"'),
    ),
    *at(
        "keys/insert.py",
        "statement_for",
        ("a key that may be remembered is not looked for", "else ENQUEUE_ONE_WITH_KEY", "else ENQUEUE_ONE"),
    ),
    *at(
        "keys/insert.py",
        "ENQUEUE_MANY",
        ("enqueue_many reserves no key", "AND key IS NOT NULL AND", "AND false AND"),
        (
            "enqueue_many reserves keys of facts that stay",
            "OPERATOR(pg_catalog.<>) 'ever'",
            "IS NOT NULL",
        ),
        ("enqueue_many reserves only keys of live facts", "OPERATOR(pg_catalog.<>) 'ever'", "= 'live'"),
        ("enqueue_many reserves keys in one namespace", "SELECT key, %(key_owner)s", "SELECT key, 'app'"),
        ("keys are reserved in any order", 'ORDER BY key COLLATE pg_catalog."C", position ON', "ON"),
        ("enqueue_many: a run with a taken key is inserted", "THEN reserved.run_id IS NOT NULL", "THEN true"),
        ("enqueue_many: a remembered key enqueues a run", "request.key IS NULL OR NOT EXISTS (", "true OR EXISTS ("),
        (
            "enqueue_many: a key that is remembered for another caller is taken",
            "kept.key_owner OPERATOR(pg_catalog.=) %(key_owner)s AND ",
            "",
        ),
        ("enqueue_many: a run has the time after a wait for a key", "request.created_at,", "{TIME},"),
        ("enqueue_many does not store keys", "request.key, %(key_owner)s", "NULL, %(key_owner)s"),
        ("enqueue_many does not store natural keys", "request.natural_key, %(unique_mode)s", "NULL, %(unique_mode)s"),
        (
            "enqueue_many does not store unique modes",
            "request.natural_key, %(unique_mode)s",
            "request.natural_key, 'ever'",
        ),
        ("enqueue_many: all callers share one namespace", "request.key, %(key_owner)s", "request.key, 'app'"),
        ("natural keys are locked in any order", 'ORDER BY request.natural_key COLLATE pg_catalog."C", ', "ORDER BY "),
        ("keys are locked in the order of payloads", 'request.key COLLATE pg_catalog."C", ', ""),
        ("enqueue_many makes every run due at once", "{DUE_AT}, %(max_attempts)s", "now(), %(max_attempts)s"),
    ),
    *at(
        "keys/keyless.py",
        "ENQUEUE_ONE_KEYLESS",
        ("one run without a key is due at once", "%(run_at)s::", "NULL::"),
        ("one run without a key excludes others for ever", "%(unique_mode)s", "'ever'"),
        ("one run without a key is the app's", "%(key_owner)s", "'app'"),
        ("one run without a key stores its trace as its creator", "%(created_by)s", "%(trace_parent)s"),
    ),
    *at(
        "keys/keyless.py",
        "ENQUEUE_MANY_KEYLESS",
        (
            "many runs store their trace as their creator",
            "key_owner, created_by, trace_parent)",
            "key_owner, trace_parent, created_by)",
        ),
        ("many runs are due at once", "{DUE_AT}", "now()"),
        ("many runs exclude others for ever", "%(unique_mode)s", "'ever'"),
        ("many runs without keys are the app's", "%(key_owner)s", "'app'"),
        ("ids are in any order", "ORDER BY given.position", "ORDER BY given.position DESC"),
        ("many runs wake nobody", "WHERE is_due LIMIT 1", "WHERE false LIMIT 1"),
    ),
    *at(
        "keys/keyless.py",
        "insert_keyless",
        ("the ids of the first portions are lost", 'ids += new["ids"]', 'ids = new["ids"]'),
        ("after an error, enqueue_many keeps some runs without keys", "with all_or_nothing(connection):", "if True:"),
    ),
    *(
        Mutant(name, "shared/rowcall/job_types/plain.py", place, stands, instead)
        for name, place, stands, instead in (
            ("fields that must be there may be absent", "PlainPayloads", "self.required <= payload.keys()", "True"),
            (
                "plain values are not validated",
                "PlainPayloads",
                "for validator in plain.validators:",
                "for validator in ():",
            ),
            ("numbers that are not finite are plain", "PlainPayloads", "not isfinite(value)", "False"),
            ("defaults are left out", "_is_filled", "field.load_default is not missing", "False"),
            ("defaults of any type are stored", "_has_default", "type(field.load_default) in (", "True or (None) in ("),
            ("a schema's own code is left out", "_has_code", "callable(value)", "False"),
            ("a field's own code is left out", "_plain", "TYPES.get(type(field))", IS_A_KIND),
        )
    ),
    *at(
        "enqueue.py",
        "outcomes_of",
        ("a replay is reported as new", "replayed=known", "replayed=False"),
        ("no key is remembered", "if remembered:", "if False:"),
        ("a key of two requests is remembered twice", "holders.requests[key] = remembered[key] =", "remembered[key] ="),
    ),
    *at(
        "enqueue.py",
        "_enqueued",
        ("a refused request keeps its key", 'free_keys(connection, columns["key_owner"], [request.keys])', "pass"),
    ),
    *at(
        "keys/holders.py",
        "FIND_HOLDERS",
        ("a run of another type holds a natural key", "job_type OPERATOR(pg_catalog.=) %(job_type)s AND ", ""),
        ("another caller's request is replayed", "WHERE key_owner OPERATOR(pg_catalog.=) %(key_owner)s AND", "WHERE"),
        (
            "the key that another caller's run has besides is replayed",
            "WHERE kept.key_owner OPERATOR(pg_catalog.=) %(key_owner)s AND",
            "WHERE",
        ),
        (
            "a key belongs to a run that does not exist",
            "JOIN rowcall.job_runs AS run ON run.id OPERATOR(pg_catalog.=) kept.run_id",
            "",
        ),
    ),
    *at(
        "keys/holders.py",
        "REMEMBER",
        ("keys are remembered in one namespace", "SELECT kept.key, %(key_owner)s", "SELECT kept.key, 'app'"),
        ("keys are remembered in any order", 'ORDER BY kept.key COLLATE pg_catalog."C"', ""),
        ("a key that another request takes first is an error", "ON CONFLICT DO NOTHING", ""),
    ),
    *at("keys/holders.py", "find_holders", ("a remembered key hides a run's own", "setdefault(", "__setitem__(")),
    *at(
        "keys/holders.py",
        "remember",
        (
            "a reserved key stays with no run",
            "free_keys(connection, key_owner, [Keys(key=key) for key in keys])",
            "pass",
        ),
        ("a key that another request took is ignored", "< len(keys):", "< 0:"),
    ),
    *at(
        "enqueue.py",
        "enqueue_prepared",
        ("the key of a deleted run stays taken", "free_keys(", "(lambda *ignored: None)("),
    ),
    *at(
        "keys/holders.py",
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
        "keys/fingerprint.py",
        "fingerprint_of",
        ("another payload has the same fingerprint", "[subject, content, options]", "[subject, options]"),
        ("other options have the same fingerprint", "[subject, content, options]", "[subject, content]"),
    ),
    *at(
        "keys/fingerprint.py",
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
    *at("keys/holders.py", "_is_key", ("keys of any length are stored", "0 < len(key) <= KEY_CHARACTERS", "True")),
    *at("keys/holders.py", "_is_key", ("keys of any characters are stored", " and key.isprintable()", "")),
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
