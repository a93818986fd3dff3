"""What operators are shown and told of: effects by state, attempts that failed lately, definitions that are paused."""

from alembic import op

revision = "0009"
down_revision = "0008"

EFFECTS = ("sent_emails", "sent_reports", "payments", "delivered_webhooks", "generated_files")


def upgrade() -> None:
    """Add the indexes; those of open effects know the state too."""
    for table in EFFECTS:
        op.execute(f"DROP INDEX {table}_open")
        op.execute(f"CREATE INDEX {table}_open ON {table} (state, id) WHERE state <> 'applied'")
    op.execute(
        "CREATE INDEX job_attempts_failed ON job_attempts (ended_at) WHERE outcome IN ('fail', 'give up', 'expire')"
    )
    op.execute("CREATE INDEX job_definitions_paused ON job_definitions (id) WHERE paused_at IS NOT NULL")


def downgrade() -> None:
    """As they were before."""
    op.execute("DROP INDEX job_attempts_failed, job_definitions_paused")
    for table in EFFECTS:
        op.execute(f"DROP INDEX {table}_open")
        op.execute(f"CREATE INDEX {table}_open ON {table} (id) WHERE state <> 'applied'")
