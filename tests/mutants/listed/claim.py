"""Mutants of queue/claims/claim.py, and of what both claims have in common."""

from __future__ import annotations

from tests.mutants.mutant import at

# What the claims of queues with and without a limit have in common.
BOTH_CLAIMS = (
    ("claims/claim.py", "claim_sql", "a claim "),
    ("claims/claim_limited.py", "claim_limited_sql", "a limited claim "),
)

CLAIM = [
    *(
        mutant
        for file, place, where in BOTH_CLAIMS
        for mutant in at(
            file,
            place,
            (f"{where}serves queues that were not named", "lanes.queue = ANY(%(queues)s::text[])", "true"),
            (f"{where}serves a paused queue", " AND queues.paused_at IS NULL", ""),
            (f"{where}skips a queue that was resumed", "queues.paused_at IS NULL", "queues.name IS NULL"),
            (f"{where}reads another queue's row", "ON queues.name = lanes.queue", "ON true"),
            (f"{where}skips a lane that is due exactly now", "lanes.run_at <= now()", "lanes.run_at < now()"),
            (f"{where}ignores a type's own limit", "(%(declared)s::jsonb ->> lanes.queue)::integer", "NULL"),
            (f"{where}ignores a queue's own limit", "least(queues.max_running, ", "least(NULL, "),
            (f"{where}also claims a run that was ended", " WHERE status IN {sources_of(Event.CLAIM)}))", "))"),
            (
                f"{where}returns less urgent runs first",
                "FROM claimed ORDER BY priority, run_at, id",
                "FROM claimed ORDER BY id",
            ),
            (f"{where}does not say which leases it ended", "'expired', {EXPIRED_RUNS}, ", ""),
        )
    ),
    *at(
        "claims/claim.py",
        "claim_sql",
        ("known lanes are visited by age", "ORDER BY lanes.turn", "ORDER BY lanes.run_at"),
        (
            "runs not due are claimed",
            "run_at <= now() AND (run_at, id) >= (due_lanes.run_at, due_lanes.id)",
            "(run_at, id) >= (due_lanes.run_at, due_lanes.id)",
        ),
        (
            "a claim takes runs of a queue in the order of enqueuing",
            "ORDER BY run_at, id\n        LIMIT %(limit)s",
            "ORDER BY id\n        LIMIT %(limit)s",
        ),
        (
            "a claim takes the last due run of a queue first",
            "ORDER BY run_at, id\n        LIMIT %(limit)s",
            "ORDER BY run_at DESC, id\n        LIMIT %(limit)s",
        ),
        ("claims wait for each other", "LIMIT %(limit)s FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s FOR UPDATE"),
        ("claims lock nothing", "LIMIT %(limit)s FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s"),
        ("each queue fills a whole batch", "LIMIT %(limit)s\n)", ")"),
        (
            "an ordinary claim ignores limits",
            "WHERE due_lanes.max_running IS NULL\n    LIMIT %(limit)s",
            "LIMIT %(limit)s",
        ),
        (
            "a claim does not report that a limited queue comes first",
            "SELECT max_running IS NOT NULL FROM",
            "SELECT false FROM",
        ),
        (
            "a claim does not report limited queues",
            "EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL)",
            "false",
        ),
    ),
    *at(
        "claims/lanes.py",
        "SERVED",
        ("running runs take up places in the batch", "status IN {sources_of(Event.CLAIM)} AND attempts", "attempts"),
        ("a claim takes runs without attempts left", "AND attempts < max_attempts", ""),
        ("a claim takes unknown types", "AND job_type = ANY(%(job_types)s::text[])", ""),
    ),
    *at(
        "claims/claim.py",
        "AHEAD",
        ("claiming ahead may use up a run's last attempt", "max_attempts > 1 AND ", ""),
        ("slow runs are claimed ahead", " AND job_type = ANY(%(quick_types)s::text[])", ""),
    ),
    *at(
        "claims/claim.py",
        "FURTHER",
        ("claiming ahead walks past any number of slow runs", " AND head.share >= 0.5", ""),
    ),
    *at(
        "claims/lanes.py",
        "LEASE_IS_OVER",
        ("a claim ends leases that have not expired", " AND locked_until < now()", ""),
    ),
    *at(
        "claims/lanes.py",
        "FIND_LANES",
        ("urgent runs wait behind the longest due", "ORDER BY priority, run_at", "ORDER BY run_at"),
        ("a queue may starve another", "ORDER BY priority, run_at", "ORDER BY priority"),
        ("a claim finds lanes in which nothing is due", "run_at <= now() AND ", ""),
        ("a claim finds lanes of queues that were not named", "queue = ANY(%(queues)s::text[])", "true"),
    ),
    *at(
        "claims/lanes.py",
        "KNOWN_LANES",
        ("a claim walks a lane from its start", "AND (run_at, id) >= (known.run_at, known.id) AND", "AND"),
        ("a head may be a run that nobody can claim", "AND ({CLAIMABLE} OR {LEASE_IS_OVER})", ""),
    ),
    *at(
        "claims/lanes.py",
        "HEADS",
        ("a claim mixes up the heads of lanes", "queue, priority, run_at, id", "queue, 0, run_at, id"),
    ),
    *at("claims/lanes.py", "TAKEN", ("a claim does not report how many it took", "count(*) AS runs", "0 AS runs")),
    *at(
        "claims/claim.py",
        "CLAIMED",
        ("a claim does not count the attempt", "run.attempts + 1", "run.attempts"),
        ("a claim reuses the old lease number", "run.lease_no + 1", "run.lease_no"),
        ("every type has the lease duration of one type", "->> run.job_type)", "->> 'noop')"),
        ("an attempt does not record when it started", "started_at = now(), ", ""),
        ("an attempt starts with the last one's progress", " - '{{share,note}}'::text[]", ""),
        ("what the last attempt saved is lost", "nullif(run.progress - '{{share,note}}'::text[], '{{}}')", "NULL"),
    ),
    *at(
        "claims/claim.py",
        "WITH_RESULTS",
        ("results sent with a claim are lost", "({SUCCEED})", "(SELECT 0 AS id WHERE false)"),
        ("a claim ends the lease of a run that it finishes", "AND id <> ALL(%(run_ids)s::bigint[])", ""),
    ),
]
