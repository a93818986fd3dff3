"""The metrics: name, labels, meaning."""

from __future__ import annotations

from rowcall_api.routes import metrics
from tests.reference.markdown import head, table


def page() -> str:
    """Return docs/reference/metrics.md."""
    rows = [
        ("rowcall_database_up", "", metrics.DATABASE_UP),
        *((gauge.name, "`queue`", gauge.meaning) for gauge in metrics.OF_A_QUEUE),
        ("rowcall_queues_unlisted", "", metrics.QUEUES_UNLISTED),
        ("rowcall_effects_unknown", "`kind`", metrics.EFFECTS_UNKNOWN),
        *((gauge.name, "", gauge.meaning) for gauge in metrics.OF_THE_WHOLE),
    ]
    lines = head("Metrics", "`api/rowcall_api/routes/metrics.py`")
    lines += [
        "`GET /metrics` serves these gauges in the format of Prometheus, to a key with the scope `read`, or to",
        "everyone if `ROWCALL_METRICS_PUBLIC` is on.",
        "",
        *table(("metric", "label", "meaning"), ((f"`{name}`", label, meaning) for name, label, meaning in rows)),
    ]
    return "\n".join(lines).rstrip() + "\n"
