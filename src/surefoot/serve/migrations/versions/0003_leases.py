"""Leases: who has which query, and for how long without a sign of life."""

import sqlalchemy as sa
from alembic import op

revision = "0003_leases"
down_revision = "0002_tokens"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "leases",
        sa.Column("study", sa.String(32), sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("query", sa.Integer, primary_key=True),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("beat", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(200), nullable=False),
        sa.Column("since", sa.String(40), nullable=False),
    )


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("leases")
