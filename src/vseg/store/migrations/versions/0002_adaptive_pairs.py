"""Add the tables for adaptive studies: chosen pairs and early stops."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add four tables and the column responses.chosen."""
    op.add_column("responses", sa.Column("chosen", sa.Boolean(), nullable=False, server_default=sa.false()))
    _batches()
    _choices()


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("image", sa.String(63), nullable=False),
        sa.Column("rule", sa.String(32), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("expected_error", sa.Float(53), nullable=False),
        sa.Column("chosen_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name="fk_batches_session", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_index("ix_batches_session", "batches", ["session"])
    op.create_table(
        "takings",
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("ahead", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["batch"], ["batches.id"], name="fk_takings_batch", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name="fk_takings_session", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("batch", "session", name="pk_takings"),
    )
    op.create_index("ix_takings_session", "takings", ["session"])


def _choices() -> None:
    op.create_table(
        "choices",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("i", sa.Integer(), nullable=False),
        sa.Column("j", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name="fk_choices_session", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["batch"], ["batches.id"], name="fk_choices_batch", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session", "item", name="pk_choices"),
    )
    op.create_index("ix_choices_batch", "choices", ["batch"])
    op.create_table(
        "stops",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("image", sa.String(63), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("until", sa.Integer(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("expected_error", sa.Float(53), nullable=False),
        sa.Column("stopped_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name="fk_stops_session", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session", "image", name="pk_stops"),
    )
