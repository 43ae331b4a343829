"""The first tables: tokens, studies and their events, remembered answers, releases of outsourced runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("revoked", sa.String(40)),
    )
    op.create_index("tokens_by_tenant", "tokens", ["tenant", "id"])
    op.create_table(
        "studies",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("tenant", sa.String(200), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("policy", sa.String(100), nullable=False),
        sa.Column("direction", sa.String(16), nullable=False),
        sa.Column("domain", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("seed", sa.String(50), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.String(40), nullable=False),
        sa.Column("updated", sa.String(40), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("told", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("pending", sa.Integer, nullable=False),
        sa.Column("stopped", sa.Integer, nullable=False),
        sa.Column("best", sa.Float(53)),
    )
    op.create_index("studies_by_tenant", "studies", ["tenant", "kind", "id"])
    op.create_table(
        "events",
        sa.Column("study", sa.String(32), sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("event", sa.Text, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("scope", sa.String(240), primary_key=True),
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("request", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
    )
    op.create_table(
        "releases",
        sa.Column("study", sa.String(32), sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("asks", sa.Integer, nullable=False),
        sa.Column("header", sa.Text),
        sa.Column("sha256", sa.String(64)),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("closing", sa.Integer),
    )
    op.create_table(
        "chunks",
        sa.Column("study", sa.String(32), sa.ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Remove the tables and all that is in them."""
    for name in ("chunks", "releases", "answers", "events", "studies", "tokens"):
        op.drop_table(name)
