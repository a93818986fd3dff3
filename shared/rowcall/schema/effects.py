"""The ledger of effects: a table for each built-in kind and one for all others, with their unique keys."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Date, Index, Integer, Table, Text, UniqueConstraint, text

from rowcall.schema.columns import check, id_column, metadata, moment, one_of


def _effect_table(name: str, key: tuple[str, ...], *columns: Column[Any]) -> Table:
    """Return a table of effects with the columns that all kinds share.

    run_id has no foreign key, because effects outlive the runs that caused them.
    """
    table = Table(
        name,
        metadata,
        id_column(),
        *columns,
        Column("run_id", BigInteger, nullable=False),
        Column("lease_no", Integer, nullable=False),
        Column("state", Text, nullable=False, server_default="intent"),
        Column("content_hash", Text, nullable=False),
        _text("provider_reference", nullable=True),
        _text("refusal", nullable=True),
        Column("generation", Integer, nullable=False, server_default=text("1")),
        moment("intent_at", default=True),
        moment("applied_at"),
        moment("updated_at", default=True),
        UniqueConstraint(*key),
        one_of("state_known", "state", "intent", "applied", "unknown", "refused"),
        check("applied_iff_dated", "(state = 'applied') = (applied_at IS NOT NULL)"),
    )
    # To show a run with its effects.
    Index(f"{name}_run", table.c.run_id)
    # For lists and counts of effects that are not applied, newest first.  They are few.
    Index(f"{name}_open", table.c.state, table.c.id, postgresql_where=table.c.state != "applied")
    return table


def _text(name: str, nullable: bool = False) -> Column[Any]:
    return Column(name, Text, nullable=nullable)


sent_emails = _effect_table(
    "sent_emails",
    ("idempotency_key",),
    _text("idempotency_key"),
    _text("message_id", nullable=True),
    _text("recipient", nullable=True),
    _text("subject", nullable=True),
)
sent_reports = _effect_table(
    "sent_reports",
    ("user_id", "week_start_date"),
    Column("user_id", BigInteger, nullable=False),
    Column("week_start_date", Date, nullable=False),
)
payments = _effect_table(
    "payments",
    ("idempotency_key",),
    _text("idempotency_key"),
    Column("invoice_id", BigInteger),
    Column("amount_minor", BigInteger),
    _text("currency", nullable=True),
)
delivered_webhooks = _effect_table(
    "delivered_webhooks",
    ("event_id",),
    _text("event_id"),
    _text("url", nullable=True),
    Column("response_status", Integer),
)
generated_files = _effect_table(
    "generated_files",
    ("type", "date", "key"),
    _text("type"),
    Column("date", Date, nullable=False),
    _text("key"),
    _text("path", nullable=True),
    _text("sha256", nullable=True),
    Column("size_bytes", BigInteger),
)

other_effects = _effect_table("other_effects", ("kind", "key"), _text("kind"), _text("key"))
# To list one kind, newest first.
Index("other_effects_kind", other_effects.c.kind, other_effects.c.id)

EFFECT_TABLES = {
    table.name: table
    for table in (sent_emails, sent_reports, payments, delivered_webhooks, generated_files, other_effects)
}
