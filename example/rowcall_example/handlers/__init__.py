"""The handlers: one file per job."""

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
