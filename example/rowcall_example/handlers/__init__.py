"""The handlers: one file per job.

A worker imports this package when it starts, so it refuses to start without the packages that the documents need.
"""

from importlib.util import find_spec

from rowcall_example.handlers import (
    build_sales_report,
    charge_invoice,
    cleanup_nightly,
    deliver_webhook,
    refresh_cache,
    send_invoice_email,
    send_invoice_reminders,
    send_weekly_report,
)

__all__ = [
    "build_sales_report",
    "charge_invoice",
    "cleanup_nightly",
    "deliver_webhook",
    "refresh_cache",
    "send_invoice_email",
    "send_invoice_reminders",
    "send_weekly_report",
]

# The documents import these only when the first of them is written; fontTools comes with fpdf.
if missing := [name for name in ("PIL", "fontTools", "fpdf", "jinja2") if find_spec(name) is None]:
    raise ImportError(f"the example needs {', '.join(missing)}: pip install 'rowcall[example]'")
