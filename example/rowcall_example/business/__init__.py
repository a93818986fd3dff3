"""The SQL of the small SaaS that the built-in jobs serve.

All functions take the caller's connection first, run in its transaction, and never commit.  Sums of money are kept per
currency and in its minor unit, and are never added up across currencies; `money` writes them for people.
"""

from rowcall_example.business.cache import CacheEntry, count_old_cache_entries, delete_old_cache_entries, refresh
from rowcall_example.business.days import utc_day
from rowcall_example.business.invoices import (
    Invoice,
    Marked,
    Reminder,
    ReminderKind,
    due_invoices,
    invoice_with_user,
    mark_paid,
)
from rowcall_example.business.sales import CurrencySales, CustomerSales, DaySales, HourSales, sales_of_day
from rowcall_example.business.sessions import count_expired_sessions, delete_expired_sessions
from rowcall_example.business.users import User, get_user
from rowcall_example.business.weekly import DayFigures, Sales, Week, WeeklyFigures, weekly_figures

__all__ = [
    "CacheEntry",
    "CurrencySales",
    "CustomerSales",
    "DayFigures",
    "DaySales",
    "HourSales",
    "Invoice",
    "Marked",
    "Reminder",
    "ReminderKind",
    "Sales",
    "User",
    "Week",
    "WeeklyFigures",
    "count_expired_sessions",
    "count_old_cache_entries",
    "delete_expired_sessions",
    "delete_old_cache_entries",
    "due_invoices",
    "get_user",
    "invoice_with_user",
    "mark_paid",
    "refresh",
    "sales_of_day",
    "utc_day",
    "weekly_figures",
]
