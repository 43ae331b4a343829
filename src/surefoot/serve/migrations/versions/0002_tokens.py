"""Tokens expire and rotate; the key of a study that was deleted begins a new one."""

import sqlalchemy as sa
from alembic import op

revision = "0002_tokens"
down_revision = "0002_studies"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; forget the keys of studies that are gone."""
    op.add_column("tokens", sa.Column("expires", sa.String(40)))
    op.add_column("tokens", sa.Column("previous", sa.String(64)))
    op.add_column("tokens", sa.Column("previous_until", sa.String(40)))
    op.execute(
        """DELETE FROM answers WHERE (scope LIKE 'create:%' OR scope LIKE 'outsource:%')
        AND answer NOT IN (SELECT '{"id":"' || id || '"}' FROM studies)"""
    )


def downgrade() -> None:
    """Remove the columns."""
    for name in ("previous_until", "previous", "expires"):
        op.drop_column("tokens", name)
