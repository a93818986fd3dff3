"""Mutants of queue/claim.py."""

from __future__ import annotations

from tests.mutants.mutant import at

CLAIM = [
    *at(
        "claim.py",
        "DUE_LANES",
        ("the urgent wait behind the longest due", "ORDER BY lanes.priority, lanes.run_at", "ORDER BY lanes.run_at"),
        ("a queue may starve another", "ORDER BY lanes.priority, lanes.run_at", "ORDER BY lanes.priority"),
        ("queues that were not named are served", "lanes.queue = ANY(%(queues)s::text[])", "true"),
        ("a paused queue is served", " AND queues.paused_at IS NULL", ""),
        ("a queue that goes on is left alone", "queues.paused_at IS NULL", "queues.name IS NULL"),
        ("another queue's pause counts", "ON queues.name = lanes.queue", "ON true"),
        ("a lane due at this very moment waits", "lanes.run_at <= now()", "lanes.run_at < now()"),
        ("a type's own limit does not count", "(%(declared)s::jsonb ->> lanes.queue)::integer", "NULL"),
        ("a queue's own limit does not count", "least(queues.max_running, ", "least(NULL, "),
    ),
    *at(
        "claim.py",
        "CLAIMABLE",
        ("running runs take others' places", "status IN {sources_of(Event.CLAIM)} AND attempts", "attempts"),
        ("runs without attempts left are claimed", "AND attempts < max_attempts", ""),
        ("unknown types are claimed", "AND job_type = ANY(%(job_types)s::text[])", ""),
    ),
    *at("claim.py", "LEASE_IS_OVER", ("a claim ends living leases", " AND locked_until < now()", "")),
    *at(
        "claim.py",
        "MET",
        (
            "runs not due are claimed",
            "priority = due_lanes.priority AND run_at <= now()",
            "priority = due_lanes.priority",
        ),
        ("within a queue the first asked for goes first", "ORDER BY run_at, id", "ORDER BY id"),
        ("within a queue the last due goes first", "ORDER BY run_at, id", "ORDER BY run_at DESC, id"),
        ("claims wait for each other", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        ("claims lock nothing", "FOR UPDATE SKIP LOCKED", ""),
        ("each queue fills a batch of its own", "LIMIT %(limit)s )", ")"),
        ("an ordinary claim takes no notice of limits", "WHERE due_lanes.max_running IS NULL", ""),
    ),
    *at(
        "claim.py",
        "TAKEN",
        ("what is ended is claimed as well", " WHERE status IN {sources_of(Event.CLAIM)}))", "))"),
        ("a claim does not count the attempt", "run.attempts + 1", "run.attempts"),
        ("a claim opens the old lease again", "run.lease_no + 1", "run.lease_no"),
        ("every type has the lease of one", "->> run.job_type)", "->> 'noop')"),
        ("an attempt does not say when it began", "started_at = now(), ", ""),
        ("an attempt begins with the last one's progress", " - '{{share,note}}'::text[]", ""),
        ("what the last attempt saved is lost", "nullif(run.progress - '{{share,note}}'::text[], '{{}}')", "NULL"),
        ("a lease ended by a claim is not remembered", '({EXPIRED_HISTORY.format(seen="met")}', "(SELECT 1"),
        ("a worker begins with the less urgent", "ORDER BY priority, run_at, id", "ORDER BY id"),
    ),
    *at(
        "claim.py",
        "LIMITED",
        (
            "what is most urgent and limited is not told first",
            "SELECT max_running IS NOT NULL FROM",
            "SELECT false FROM",
        ),
        ("what is limited is not told of", "EXISTS (SELECT FROM due_lanes WHERE max_running IS NOT NULL)", "false"),
    ),
    *at(
        "claim.py",
        "FINISH_AND_CLAIM",
        ("results sent with a claim are lost", "({SUCCEED})", "(SELECT 0 AS id WHERE false)"),
    ),
    *at(
        "claim.py",
        "MET_BESIDE",
        ("a claim ends the lease of what is just finished", " AND id <> ALL(%(run_ids)s::bigint[])", ""),
    ),
]
