"""The tables as the code expects them.  Migrations create them, and a test checks that the two match."""

from rowcall.schema.archived_runs import archived_runs
from rowcall.schema.columns import metadata
from rowcall.schema.effects import EFFECT_TABLES
from rowcall.schema.failure_counts import failure_counts
from rowcall.schema.incidents import alert_checks, incidents, pings
from rowcall.schema.many_runs import operation_refusals, operations
from rowcall.schema.operations import api_keys, audit_log, queues, workers
from rowcall.schema.page_sessions import page_sessions, page_views
from rowcall.schema.request_keys import request_keys
from rowcall.schema.run_logs import run_logs
from rowcall.schema.runs import job_attempts, job_definitions, job_runs, schedule_occurrences, schedule_ticks
from rowcall.schema.series import run_counts, worker_versions

__all__ = [
    "EFFECT_TABLES",
    "alert_checks",
    "api_keys",
    "archived_runs",
    "audit_log",
    "failure_counts",
    "incidents",
    "job_attempts",
    "job_definitions",
    "job_runs",
    "metadata",
    "operation_refusals",
    "operations",
    "page_sessions",
    "page_views",
    "pings",
    "queues",
    "request_keys",
    "run_counts",
    "run_logs",
    "schedule_occurrences",
    "schedule_ticks",
    "worker_versions",
    "workers",
]
