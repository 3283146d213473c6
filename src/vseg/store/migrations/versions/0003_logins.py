"""Store logins as rows, by the hashes of their cookies, and delete the key that signed cookies."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table logins and delete the setting cookie_key; researchers have to log in again."""
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
