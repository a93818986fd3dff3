"""The small SaaS that the built-in jobs serve."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, ForeignKey, Index, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from shared.schema.base import check, id_column, metadata, moment, one_of

users = Table(
    "users",
    metadata,
    id_column(),
    Column("email", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("time_zone", Text, nullable=False, server_default="UTC"),
    moment("created_at", default=True),
)

orders = Table(
    "orders",
    metadata,
    id_column(),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    moment("ordered_at", default=True),
    check("amount_not_negative", "amount_minor >= 0"),
)
# A user's week, for the weekly report.
Index("orders_user", orders.c.user_id, orders.c.ordered_at)
# A day's sales, for the sales report.
Index("orders_day", orders.c.ordered_at)

invoices = Table(
    "invoices",
    metadata,
    id_column(),
    Column("user_id", BigInteger, ForeignKey("users.id"), nullable=False),
    Column("number", Text, nullable=False, unique=True),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", Text, nullable=False),
    Column("status", Text, nullable=False, server_default="open"),
    Column("due_on", Date, nullable=False),
    moment("paid_at"),
    moment("created_at", default=True),
    one_of("status_known", "status", "open", "paid", "void"),
    check("paid_iff_dated", "(status = 'paid') = (paid_at IS NOT NULL)"),
    check("amount_not_negative", "amount_minor >= 0"),
)
# What a day's reminders look for.
Index("invoices_due", invoices.c.due_on, postgresql_where=invoices.c.status == "open")

sessions = Table(
    "sessions",
    metadata,
    id_column(),
    Column("user_id", BigInteger, ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    moment("started_at", default=True),
    moment("expires_at", nullable=False),
)
# The nightly cleanup deletes from this index's head, in batches.
Index("sessions_expiry", sessions.c.expires_at)
# A user's week, for the weekly report.
Index("sessions_user", sessions.c.user_id, sessions.c.started_at)

cache_entries = Table(
    "cache_entries",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", JSONB, nullable=False),
    moment("refreshed_at", default=True),
    moment("expires_at", nullable=False),
)
Index("cache_entries_expiry", cache_entries.c.expires_at)
