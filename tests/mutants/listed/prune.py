"""Mutants of queue/retention/prune.py."""

from __future__ import annotations

from tests.mutants.mutant import at

PRUNE = [
    *at(
        "retention/prune.py",
        "VERSION",
        ("a run that has changed since it was read is pruned", "extract(epoch FROM run.updated_at)", "''"),
    ),
    *at(
        "retention/prune.py",
        "DAYS",
        ("a type's own days are ignored", "%(types)s::jsonb -> page.job_type ->> page.status, ", ""),
        (
            "one type's days count for all types",
            "%(types)s::jsonb -> page.job_type",
            "%(types)s::jsonb -> 'gone_since'",
        ),
        (
            "one status's days count for all statuses",
            "%(days)s::jsonb ->> page.status",
            "%(days)s::jsonb ->> 'succeeded'",
        ),
    ),
    *at(
        "retention/prune.py",
        "PAGE",
        (
            "a walk skips a run between two pages",
            "WHERE id > %(after_id)s::bigint",
            "WHERE id > %(after_id)s::bigint + 1",
        ),
        ("a walk starts at its end", "ORDER BY id LIMIT", "ORDER BY id DESC LIMIT"),
        ("a walk reads runs that are too new", "WHERE run.created_at < now() - %(shortest)s * interval '24 hours'", ""),
        ("a page has no limit", " LIMIT %(batch)s", ""),
        ("a page ends at its first run", "FROM page ORDER BY id DESC LIMIT 1", "FROM page ORDER BY id LIMIT 1"),
        ("runs are pruned too early", "WHERE finished_at < now() - {DAYS} * interval '24 hours'", "WHERE true"),
        ("runs are pruned exactly at the end of their time", "WHERE finished_at < now()", "WHERE finished_at <= now()"),
        ("pruned runs are pruned again", " AND bare = %(bare)s", ""),
    ),
    *at(
        "retention/prune.py",
        "IS_UNCHANGED",
        (
            "runs that are not due are pruned",
            "run.id = ANY(%(due)s::bigint[]) AND {VERSION} = ANY(%(versions)s::text[])",
            "true",
        ),
        ("a run's version is not compared", " AND {VERSION} = ANY(%(versions)s::text[])", ""),
    ),
    *at(
        "retention/prune.py",
        "HAS_A_KEY",
        (
            "natural keys are deleted with their runs",
            "coalesce(run.held_key, run.idempotency_key)",
            "run.idempotency_key",
        ),
        (
            "keys of further requests are deleted with their runs",
            "OR EXISTS (SELECT FROM rowcall.request_keys WHERE request_keys.run_id = run.id)",
            "",
        ),
    ),
    *at(
        "retention/prune.py",
        "_PRUNED",
        ("live runs are pruned", " AND run.finished_at IS NOT NULL", ""),
        ("pruning waits for a locked run", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        (
            "keys are deleted with their runs",
            "NOT {HAS_A_KEY} OR run.pruned_at IS NOT NULL AS goes",
            "true AS goes",
        ),
        ("bare rows are never deleted", " OR run.pruned_at IS NOT NULL AS goes", " AS goes"),
    ),
    *at(
        "retention/prune.py",
        "_GONE",
        ("every pruned run is deleted", "FROM pruned WHERE goes)", "FROM pruned)"),
        ("attempts are kept", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE false"),
        ("attempts of other runs are deleted", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE true"),
    ),
    *at(
        "retention/prune.py",
        "EMPTIED",
        ("payloads are kept", "payload = '{}', ", ""),
        ("results are kept", "result = NULL, ", ""),
        ("progress is kept", "progress = NULL, ", ""),
        ("errors are kept", "last_error = NULL, ", ""),
        ("stacks are kept", "last_stack = NULL, ", ""),
        ("traces are kept", "trace_parent = NULL, ", ""),
        ("pruned_at is not set", "pruned_at = now(), ", ""),
    ),
    *at(
        "retention/prune.py",
        "ARCHIVED",
        ("attempts of other runs are archived", "WHERE ended.run_id = run.id", "WHERE true"),
        ("lines of other runs are archived", "WHERE logged.run_id = run.id", "WHERE true"),
        ("other runs are archived", "WHERE {IS_UNCHANGED}", ""),
    ),
    *at(
        "retention/archive.py",
        "INTO_TABLE",
        ("attempts of other runs are archived in the table", "WHERE ended.run_id = run.id", ""),
        ("lines of other runs are archived in the table", "WHERE logged.run_id = run.id", ""),
        ("other runs are archived in the table", "WHERE id = ANY(ARRAY(SELECT id FROM pruned))", ""),
        ("a run that is archived already is never pruned", "ON CONFLICT (id, created_at) DO NOTHING", ""),
    ),
    *at(
        "retention/archive.py",
        "MAKE_MONTHS",
        ("months follow the session's time zone", "created_at AT TIME ZONE 'UTC'", "created_at"),
    ),
    *at(
        "retention/archive.py",
        "OLD_MONTHS",
        ("a month is dropped before its last run is old enough", "month + interval '1 month' <=", "month <="),
        (
            "a month is kept one month too long",
            "make_interval(months => %(keep)s)",
            "make_interval(months => %(keep)s + 1)",
        ),
    ),
    *at(
        "retention/export.py",
        "EXPORT",
        ("an export also has earlier months", "AND created_at >= %(month)s::date::timestamp AT TIME ZONE 'UTC'", ""),
        (
            "an export also has later months",
            "AND created_at < (%(month)s::date + interval '1 month') AT TIME ZONE 'UTC'",
            "",
        ),
        ("an export leaves runs out", "ORDER BY id LIMIT", "ORDER BY id DESC LIMIT"),
    ),
    *at(
        "retention/prune.py",
        "_OLD",
        ("occurrences of other definitions count", "WHERE definition_id = definition.id AND", "WHERE"),
        ("new occurrences are deleted", "least(now() - %(keep_days)s * interval '24 hours', (", "least(now(), ("),
        ("the last occurrence is deleted too", "nominal_at < least(", "nominal_at <= least("),
    ),
    *at(
        "retention/prune.py",
        "POLICY",
        ("any definition sets the policy", "name = %(job_type)s AND ", ""),
        ("a definition of another type sets the policy", " AND job_type = %(job_type)s", ""),
        ("a removed definition sets the policy", " AND removed_at IS NULL", ""),
    ),
]
