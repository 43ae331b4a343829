"""Studies know a hash over their events, the release that made them, and how many bytes they take.

What is there already is not read: the hash of a study is filled in when it is next written to.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002_studies"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; their defaults also hold for servers of 0.1 that still write."""
    op.add_column("studies", sa.Column("hash", sa.String(64), nullable=False, server_default=""))
    op.add_column("studies", sa.Column("release", sa.String(40), nullable=False, server_default="0.1.0"))
    op.add_column("studies", sa.Column("bytes", sa.BigInteger, nullable=False, server_default="0"))


def downgrade() -> None:
    """Remove the columns."""
    for name in ("bytes", "release", "hash"):
        op.drop_column("studies", name)
