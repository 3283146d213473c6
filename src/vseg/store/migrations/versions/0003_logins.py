"""Logins as rows, by the hashes of their cookies; the key that signed cookies, good for forging them, is gone."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """One table more, one secret less: whoever was logged in logs in again."""
    op.create_table(
        "logins",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("researcher", sa.Integer(), nullable=False),
        sa.Column("made_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["researcher"], ["researchers.id"], name="fk_logins_researcher", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name="pk_logins"),
    )
    op.create_index("ix_logins_researcher", "logins", ["researcher"])
    settings = sa.table("settings", sa.column("name", sa.String))
    op.execute(settings.delete().where(settings.c.name == "cookie_key"))
