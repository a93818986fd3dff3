"""The app's SQL: one module for each subject.

All functions take the caller's connection first, run in its transaction, and never commit.  Sums of money are separate
for each currency, in its minor unit, and are never added up across currencies.
"""

from rowcall_example.queries.cache import CacheEntry, count_old_cache_entries, delete_old_cache_entries, refresh
from rowcall_example.queries.invoices import (
    Invoice,
    Marked,
    Reminder,
    ReminderKind,
    due_invoices,
    invoice_with_user,
    mark_paid,
)
from rowcall_example.queries.sales import CurrencySales, CustomerSales, DaySales, HourSales, sales_of_day
from rowcall_example.queries.sessions import count_expired_sessions, delete_expired_sessions
from rowcall_example.queries.users import User, get_user
from rowcall_example.queries.weekly import DayFigures, Sales, Week, WeeklyFigures, weekly_figures

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
    "weekly_figures",
]
