"""Mutants of queue/claims/claim.py, and of what both claims say alike."""

from __future__ import annotations

from tests.mutants.mutant import at

# What the claims of queues with and without a limit say alike.
BOTH_CLAIMS = (("claims/claim.py", "claim_sql", ""), ("claims/claim_limited.py", "claim_limited_sql", "under a limit "))

CLAIM = [
    *(
        mutant
        for file, place, where in BOTH_CLAIMS
        for mutant in at(
            file,
            place,
            (f"{where}queues that were not named are served", "lanes.queue = ANY(%(queues)s::text[])", "true"),
            (f"{where}a paused queue is served", " AND queues.paused_at IS NULL", ""),
            (f"{where}a queue that goes on is left alone", "queues.paused_at IS NULL", "queues.name IS NULL"),
            (f"{where}another queue's row counts", "ON queues.name = lanes.queue", "ON true"),
            (f"{where}a lane due at this very moment waits", "lanes.run_at <= now()", "lanes.run_at < now()"),
            (f"{where}a type's own limit does not count", "(%(declared)s::jsonb ->> lanes.queue)::integer", "NULL"),
            (f"{where}a queue's own limit does not count", "least(queues.max_running, ", "least(NULL, "),
            (f"{where}what is ended is claimed as well", " WHERE status IN {sources_of(Event.CLAIM)}))", "))"),
            (
                f"{where}a worker begins with the less urgent",
                "FROM expired\n    ORDER BY priority, run_at, id",
                "FROM expired\n    ORDER BY id",
            ),
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
            "within a queue the first asked for goes first",
            "ORDER BY run_at, id\n        LIMIT %(limit)s",
            "ORDER BY id\n        LIMIT %(limit)s",
        ),
        (
            "within a queue the last due goes first",
            "ORDER BY run_at, id\n        LIMIT %(limit)s",
            "ORDER BY run_at DESC, id\n        LIMIT %(limit)s",
        ),
        ("claims wait for each other", "LIMIT %(limit)s FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s FOR UPDATE"),
        ("claims lock nothing", "LIMIT %(limit)s FOR UPDATE SKIP LOCKED", "LIMIT %(limit)s"),
        ("each queue fills a batch of its own", "LIMIT %(limit)s\n)", ")"),
        (
            "an ordinary claim takes no notice of limits",
            "WHERE due_lanes.max_running IS NULL\n    LIMIT %(limit)s",
            "LIMIT %(limit)s",
        ),
        (
            "what is most urgent and limited is not told first",
            "SELECT max_running IS NOT NULL FROM",
            "SELECT false FROM",
        ),
        ("what is limited is not told of", "EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL)", "false"),
    ),
    *at(
        "claims/lanes.py",
        "SERVED",
        ("running runs take others' places", "status IN {sources_of(Event.CLAIM)} AND attempts", "attempts"),
        ("runs without attempts left are claimed", "AND attempts < max_attempts", ""),
        ("unknown types are claimed", "AND job_type = ANY(%(job_types)s::text[])", ""),
    ),
    *at(
        "claims/claim.py",
        "AHEAD",
        ("a run's last attempt may be used up by waiting", "max_attempts > 1 AND ", ""),
        ("slow runs are claimed ahead", " AND job_type = ANY(%(quick_types)s::text[])", ""),
    ),
    *at("claims/claim.py", "FURTHER", ("it walks past any number of slow runs", " AND head.share >= 0.5", "")),
    *at("claims/lanes.py", "LEASE_IS_OVER", ("a claim ends living leases", " AND locked_until < now()", "")),
    *at(
        "claims/lanes.py",
        "FIND_LANES",
        ("the urgent wait behind the longest due", "ORDER BY priority, run_at", "ORDER BY run_at"),
        ("a queue may starve another", "ORDER BY priority, run_at", "ORDER BY priority"),
        ("lanes are found in which nothing is due", "run_at <= now() AND ", ""),
        ("lanes are found that nobody asked for", "queue = ANY(%(queues)s::text[])", "true"),
    ),
    *at(
        "claims/lanes.py",
        "KNOWN_LANES",
        ("a claim walks a lane from its beginning", "AND (run_at, id) >= (known.run_at, known.id) AND", "AND"),
        ("a head is nothing that could be taken", "AND ({CLAIMABLE} OR {LEASE_IS_OVER})", ""),
    ),
    *at(
        "claims/lanes.py",
        "HEADS",
        ("the lanes' heads are mixed up", "queue, priority, run_at, id", "queue, 0, run_at, id"),
    ),
    *at("claims/lanes.py", "TAKEN", ("nobody is told how many were taken", "count(*) AS runs", "0 AS runs")),
    *at(
        "claims/claim.py",
        "CLAIMED",
        ("a claim does not count the attempt", "run.attempts + 1", "run.attempts"),
        ("a claim opens the old lease again", "run.lease_no + 1", "run.lease_no"),
        ("every type has the lease of one", "->> run.job_type)", "->> 'noop')"),
        ("an attempt does not say when it began", "started_at = now(), ", ""),
        ("an attempt begins with the last one's progress", " - '{{share,note}}'::text[]", ""),
        ("what the last attempt saved is lost", "nullif(run.progress - '{{share,note}}'::text[], '{{}}')", "NULL"),
    ),
    *at(
        "claims/claim.py",
        "WITH_RESULTS",
        ("results sent with a claim are lost", "({SUCCEED})", "(SELECT 0 AS id WHERE false)"),
        ("a claim ends the lease of what is just finished", "AND id <> ALL(%(run_ids)s::bigint[])", ""),
    ),
]
