"""All tables of Rowcall 0.2, in a separate schema.

Frozen from 0.2.0 on: each later change is a new version.
"""

from alembic import op

from rowcall_migrations.baseline.operations import EFFECT, EFFECTS, OPERATIONS, OTHER_EFFECTS_KIND, WAKE
from rowcall_migrations.baseline.runs import RUNS

revision = "0001"
down_revision = None
fits = "0001"

# Alembic's own table: `fits` tells older code whether it can work with a schema that it does not know.
VERSION = "ALTER TABLE rowcall.schema_version ADD COLUMN IF NOT EXISTS fits text"


def upgrade() -> None:
    """Create the tables."""
    op.execute(VERSION)
    op.execute(RUNS)
    for table, (key, columns) in EFFECTS.items():
        op.execute(EFFECT.format(table=table, key=key, columns=columns, key_name=key.replace(", ", "_")))
    op.execute(OTHER_EFFECTS_KIND)
    op.execute(OPERATIONS)
    op.execute(WAKE)


def downgrade() -> None:
    """Drop them; alembic's own table stays, empty."""
    op.execute(
        "DROP TABLE rowcall.audit_log, rowcall.api_keys, rowcall.queues, rowcall.workers, rowcall.other_effects,"
        " rowcall.generated_files,"
        " rowcall.delivered_webhooks, rowcall.payments, rowcall.sent_reports, rowcall.sent_emails,"
        " rowcall.schedule_ticks, rowcall.schedule_occurrences, rowcall.job_attempts, rowcall.job_runs,"
        " rowcall.job_definitions"
    )
    op.execute("DROP FUNCTION rowcall.refuse_audit_change(), rowcall.wake(text, text)")
