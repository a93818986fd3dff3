"""The live tables.  Migrations make them; a test holds both equal, to the last index and constraint."""

from shared.schema.base import metadata
from shared.schema.business import cache_entries, invoices, orders, sessions, users
from shared.schema.effects import EFFECT_TABLES
from shared.schema.operations import api_keys, audit_log, queues, workers
from shared.schema.runs import job_attempts, job_definitions, job_runs, schedule_occurrences, schedule_ticks

__all__ = [
    "EFFECT_TABLES",
    "api_keys",
    "audit_log",
    "cache_entries",
    "invoices",
    "job_attempts",
    "job_definitions",
    "job_runs",
    "metadata",
    "orders",
    "queues",
    "schedule_occurrences",
    "schedule_ticks",
    "sessions",
    "users",
    "workers",
]
