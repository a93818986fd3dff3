"""Mutants of queue/retention/prune.py."""

from __future__ import annotations

from tests.mutants.mutant import at

PRUNE = [
    *at(
        "retention/prune.py",
        "VERSION",
        ("what changed since it was seen is taken", "extract(epoch FROM run.updated_at)", "''"),
    ),
    *at(
        "retention/prune.py",
        "DAYS",
        ("a type's own days do not count", "%(types)s::jsonb -> page.job_type ->> page.status, ", ""),
        ("one type's days count for all", "%(types)s::jsonb -> page.job_type", "%(types)s::jsonb -> 'gone_since'"),
        ("one status's days count for all", "%(days)s::jsonb ->> page.status", "%(days)s::jsonb ->> 'succeeded'"),
    ),
    *at(
        "retention/prune.py",
        "PAGE",
        ("of runs asked for at once only one page is met", "(run.created_at, run.id) >", "(run.created_at, 0) >"),
        ("a walk begins in the middle", "ORDER BY run.created_at, run.id LIMIT", "ORDER BY run.id LIMIT"),
        ("a page has no end", " LIMIT %(batch)s", ""),
        ("a page ends at its first run", "ORDER BY created_at DESC, id DESC", "ORDER BY created_at, id"),
        ("runs go before their time", "WHERE finished_at < now() - {DAYS} * interval '24 hours'", "WHERE true"),
        ("runs go at their time's very end", "WHERE finished_at < now()", "WHERE finished_at <= now()"),
        ("what is pruned is pruned again", " AND bare = %(bare)s", ""),
    ),
    *at(
        "retention/prune.py",
        "IS_UNCHANGED",
        (
            "runs beside those that are due go",
            "run.id = ANY(%(due)s::bigint[]) AND {VERSION} = ANY(%(versions)s::text[])",
            "true",
        ),
        ("it does not matter how a run was seen", " AND {VERSION} = ANY(%(versions)s::text[])", ""),
    ),
    *at(
        "retention/prune.py",
        "PRUNE",
        ("live runs are taken", " AND run.finished_at IS NOT NULL", ""),
        ("pruning waits for who holds a run", "FOR UPDATE SKIP LOCKED", "FOR UPDATE"),
        (
            "keys go with their runs",
            "coalesce(held_key, idempotency_key) IS NULL OR pruned_at IS NOT NULL AS goes",
            "true AS goes",
        ),
        ("natural keys go with their runs", "coalesce(held_key, idempotency_key)", "idempotency_key"),
        ("bare rows never go", " OR pruned_at IS NOT NULL AS goes", " AS goes"),
        ("all that is pruned is deleted", "FROM pruned WHERE goes)", "FROM pruned)"),
        ("payloads stay", "payload = '{{}}', ", ""),
        ("results stay", "result = NULL, ", ""),
        ("progress stays", "progress = NULL, ", ""),
        ("errors stay", "last_error = NULL, ", ""),
        ("stacks stay", "last_stack = NULL, ", ""),
        ("traces stay", ", trace_parent = NULL", ""),
        ("nobody knows what was pruned", "pruned_at = now(), ", ""),
        ("attempts stay", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE false"),
        ("attempts of other runs go", "WHERE run_id = ANY(ARRAY(SELECT id FROM made_bare))", "WHERE true"),
    ),
    *at(
        "retention/prune.py",
        "ARCHIVED",
        ("attempts of other runs are archived", "WHERE ended.run_id = run.id", "WHERE true"),
        ("other runs are archived", "WHERE {IS_UNCHANGED}", ""),
    ),
    *at(
        "retention/prune.py",
        "_OLD",
        ("other definitions' occurrences count", "WHERE definition_id = definition.id AND", "WHERE"),
        ("new occurrences go", "least(now() - %(keep_days)s * interval '24 hours', (", "least(now(), ("),
        ("the last occurrence goes too", "nominal_at < least(", "nominal_at <= least("),
    ),
    *at(
        "retention/prune.py",
        "POLICY",
        ("any definition is the policy", "name = %(job_type)s AND ", ""),
        ("a definition of another type is the policy", " AND job_type = %(job_type)s", ""),
        ("a definition that was removed is the policy", " AND removed_at IS NULL", ""),
    ),
]
