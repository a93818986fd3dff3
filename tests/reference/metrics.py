"""The metrics: name, labels, meaning."""

from __future__ import annotations

from rowcall_api.routes import metrics
from rowcall_worker.runtime.counts.metrics import ALL
from tests.reference.markdown import head, table


def page() -> str:
    """Return docs/reference/metrics.md."""
    rows = [
        ("rowcall_database_up", "", metrics.DATABASE_UP),
        ("rowcall_standby_up", "", metrics.STANDBY_UP),
        ("rowcall_standby_age_seconds", "", metrics.STANDBY_AGE),
        *((gauge.name, "`queue`", gauge.meaning) for gauge in metrics.OF_A_QUEUE),
        ("rowcall_queues_unlisted", "", metrics.QUEUES_UNLISTED),
        ("rowcall_effects_unknown", "`kind`", metrics.EFFECTS_UNKNOWN),
        *((gauge.name, "", gauge.meaning) for gauge in metrics.OF_THE_WHOLE),
    ]
    of_workers = [(one.name, ", ".join(f"`{label}`" for label in one.labels), one.meaning) for one in ALL]
    lines = head("Metrics", "`api/rowcall_api/routes/metrics.py` and `worker/rowcall_worker/runtime/counts/metrics.py`")
    lines += [
        "[Monitoring](../monitoring.md) has alert rules and a dashboard for them.",
        "",
        "## Metrics of the API",
        "",
        "`GET /metrics` serves these gauges in the Prometheus format, to a key with the scope `read`, or to",
        "everyone if `ROWCALL_METRICS_PUBLIC` is on.",
        "",
        *_listed(rows),
        "",
        "## Metrics of a worker",
        "",
        "`rowcall worker run --metrics-port PORT` serves these from its memory, without a key.",
        "",
        *_listed(of_workers),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _listed(rows: list[tuple[str, str, str]]) -> list[str]:
    return table(("metric", "label", "meaning"), ((f"`{name}`", label, meaning) for name, label, meaning in rows))
