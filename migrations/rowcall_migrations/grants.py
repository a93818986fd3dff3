"""`rowcall migrate --grants`: one role for each duty, with exactly the rights that the duty needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from rowcall.schema.revision import VERSION_TABLE
from rowcall.schema.tables import EFFECT_TABLES

# A role's name that needs no further quoting within quotes.
ROLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]{0,62}")

READ_WRITE = ("SELECT", "INSERT", "UPDATE")
ALL = (*READ_WRITE, "DELETE")

ENQUEUED = (
    *("id", "job_type", "payload", "queue", "priority", "run_at", "max_attempts"),
    *("natural_key", "unique_mode", "content_fingerprint", "idempotency_key", "key_owner", "request_fingerprint"),
    *("created_by", "trace_parent", "status", "created_at"),
)

KEPT = ("idempotency_key", "key_owner", "run_id", "request_fingerprint")

# The enqueuing role sees only the columns of a run that it needs to recognize a repeated request.
ENQUEUE = {
    VERSION_TABLE: ("SELECT",),
    "job_runs": (
        "SELECT (id, job_type, run_at, held_key, content_fingerprint, idempotency_key, key_owner, request_fingerprint)",
        f"INSERT ({', '.join(ENQUEUED)})",
    ),
    "request_keys": (f"SELECT ({', '.join(KEPT)})", f"INSERT ({', '.join(KEPT)})"),
    "workers": ("SELECT (sleeps_until, queues, job_types)",),
}

WORKER = {
    VERSION_TABLE: ("SELECT",),
    "job_definitions": READ_WRITE,
    "job_runs": ALL,
    "job_attempts": ALL,
    "request_keys": ("SELECT", "INSERT"),
    "run_logs": ("SELECT", "INSERT", "DELETE"),
    "archived_runs": READ_WRITE,
    "failure_counts": ALL,
    "run_counts": ALL,
    "worker_versions": ("SELECT", "INSERT"),
    "incidents": ALL,
    "alert_checks": READ_WRITE,
    "pings": READ_WRITE,
    "schedule_occurrences": ALL,
    "schedule_ticks": ("SELECT", "UPDATE"),
    "workers": ALL,
    "queues": READ_WRITE,
    "operations": ALL,
    "operation_refusals": ("SELECT", "INSERT"),
    "audit_log": ("SELECT", "INSERT"),
    **dict.fromkeys(EFFECT_TABLES, READ_WRITE),
}

API = {
    VERSION_TABLE: ("SELECT",),
    "job_definitions": READ_WRITE,
    "job_runs": READ_WRITE,
    "job_attempts": ("SELECT", "INSERT"),
    "request_keys": ("SELECT", "INSERT"),
    "run_logs": ("SELECT",),
    "archived_runs": ("SELECT",),
    "failure_counts": ("SELECT",),
    "run_counts": ("SELECT",),
    "worker_versions": ("SELECT",),
    "incidents": ("SELECT",),
    "alert_checks": ("SELECT",),
    "pings": ("SELECT",),
    "schedule_occurrences": ("SELECT",),
    "schedule_ticks": ("SELECT",),
    "workers": ("SELECT",),
    "queues": ALL,
    "operations": READ_WRITE,
    "operation_refusals": ("SELECT", "INSERT"),
    "api_keys": READ_WRITE,
    "page_sessions": ("SELECT", "INSERT", "DELETE"),
    "page_views": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "audit_log": ("SELECT", "INSERT"),
    **dict.fromkeys(EFFECT_TABLES, ("SELECT", "UPDATE")),
}

ROLES = {"enqueue": ENQUEUE, "worker": WORKER, "api": API}

# The functions that a duty may execute, besides those that all may.
FUNCTIONS = {"worker": "rowcall.make_archive_month(date), rowcall.drop_archive_month(date, bigint)"}

# A part of the head of each printed script.
HOW_TO_RUN = """\
--   psql --no-psqlrc --set ON_ERROR_STOP=1 --file FILE "$DATABASE_URL"
-- psql does not accept SQLAlchemy's postgresql+psycopg2://.  If your DATABASE_URL begins with it, write
-- "$(echo "$DATABASE_URL" | sed s/+psycopg2//)" in place of "$DATABASE_URL".
"""

HEAD = f"""\
-- Rowcall's roles: run this as the owner of the tables, with the right to create roles, and again after each migration.
{HOW_TO_RUN}\
-- If programs connect with other roles, grant these roles to them: GRANT {{worker}} TO the_role_that_connects;
BEGIN;
-- A database's default privileges may have granted these rights to everybody.
REVOKE ALL ON SCHEMA rowcall FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA rowcall FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA rowcall FROM PUBLIC;
"""

# CREATE ROLE has no IF NOT EXISTS, and roles belong to the whole server, so another database may have created them.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '{name}') THEN CREATE ROLE "{name}" NOLOGIN; END IF;
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA rowcall FROM "{name}";
GRANT USAGE ON SCHEMA rowcall TO "{name}";
GRANT USAGE ON SEQUENCE rowcall.job_runs_id_seq TO "{name}";
GRANT EXECUTE ON FUNCTION rowcall.wake(text, text), rowcall.free_keys(text, text[]), rowcall.insert_run TO "{name}";
"""


def as_grants(named: Sequence[str]) -> str:
    """Return a script that creates the roles and sets exactly these rights."""
    names = {duty: f"rowcall_{duty}" for duty in ROLES} | dict(_parsed(text) for text in named)
    lines = [HEAD.format(worker=names["worker"])]
    for duty, tables in ROLES.items():
        lines.append(ROLE.format(name=names[duty]))
        lines += [
            f'GRANT {", ".join(rights)} ON rowcall.{table} TO "{names[duty]}";\n' for table, rights in tables.items()
        ]
        lines += [f'GRANT EXECUTE ON FUNCTION {FUNCTIONS[duty]} TO "{names[duty]}";\n'] if duty in FUNCTIONS else []
    return "".join([*lines, "\nCOMMIT;\n"])


def _parsed(text: str) -> tuple[str, str]:
    """Parse DUTY=NAME."""
    duty, _, name = text.partition("=")
    if duty not in ROLES or not ROLE_NAME.fullmatch(name):
        raise click.UsageError(f"--role {text}: must be one of {', '.join(f'{duty}=NAME' for duty in ROLES)}")
    return duty, name
