"""The app's own endpoints: the API mounts every blueprint listed here."""

from rowcall_example.routes.cleanups import blueprint as cleanups
from rowcall_example.routes.invoices import blueprint as invoices
from rowcall_example.routes.reports import blueprint as reports

__all__ = ["cleanups", "invoices", "reports"]
