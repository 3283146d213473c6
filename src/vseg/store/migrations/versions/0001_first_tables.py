"""Create the first tables. A migration is never changed; later changes are new files."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    _studies()
    _people()
    _sessions()
    _records()
    _researchers()


def _studies() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("frozen_at_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
        sa.UniqueConstraint("name", name="uq_studies_name"),
    )
    op.create_table(
        "images",
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("width_px", sa.Integer(), nullable=False),
        sa.Column("height_px", sa.Integer(), nullable=False),
        sa.Column("png", sa.LargeBinary(), nullable=False),
        sa.Column("truth", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_images_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("study", "name", name="pk_images"),
    )


def _people() -> None:
    op.create_table(
        "participants",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_participants_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_participants"),
        sa.UniqueConstraint("name", name="uq_participants_name"),
    )
    op.create_table(
        "identities",
        sa.Column("participant", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("prolific_pid", sa.String(64), nullable=False),
        sa.Column("prolific_study", sa.String(64), nullable=False),
        sa.Column("prolific_session", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(
            ["participant"], ["participants.id"], name="fk_identities_participant", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_identities_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("participant", name="pk_identities"),
        sa.UniqueConstraint("study", "prolific_pid", name="uq_identities_study_prolific_pid"),
    )
    op.create_table(
        "links",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("participant", sa.Integer()),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["participant"], ["participants.id"], name="fk_links_participant", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_links_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.UniqueConstraint("token_hash", name="uq_links_token_hash"),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("participant", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("entry_hash", sa.String(64)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("software", sa.Text(), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger()),
        sa.Column("trials", sa.Text()),
        sa.ForeignKeyConstraint(
            ["participant"], ["participants.id"], name="fk_sessions_participant", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_sessions_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("name", name="uq_sessions_name"),
        sa.UniqueConstraint("study", "entry_hash", name="uq_sessions_study_entry_hash"),
        sa.UniqueConstraint("token_hash", name="uq_sessions_token_hash"),
    )
    op.create_index("ix_sessions_participant", "sessions", ["participant"])
    op.create_index("ix_sessions_study_status", "sessions", ["study", "status"])
    op.create_table(
        "assignments",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("study", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("image", sa.String(63), nullable=False),
        sa.Column("unit", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"], ["sessions.id"], name="fk_assignments_session", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["study"], ["studies.id"], name="fk_assignments_study", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session", "position", name="pk_assignments"),
    )
    op.create_index("ix_assignments_study_image_unit", "assignments", ["study", "image", "unit"])


def _records() -> None:
    op.create_table(
        "responses",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("item", sa.Integer(), nullable=False),
        sa.Column("image", sa.String(63), nullable=False),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("trial", sa.Integer(), nullable=False),
        sa.Column("i", sa.Integer(), nullable=False),
        sa.Column("j", sa.Integer(), nullable=False),
        sa.Column("practice", sa.Boolean(), nullable=False),
        sa.Column("catch", sa.Boolean(), nullable=False),
        sa.Column("same", sa.Boolean(), nullable=False),
        sa.Column("rt_ms", sa.Float(53), nullable=False),
        sa.Column("key", sa.String(16), nullable=False),
        sa.Column("shown_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("cue_onset_ms", sa.Float(53), nullable=False),
        sa.Column("cue_asked_ms", sa.Float(53), nullable=False),
        sa.Column("cue_ms", sa.Float(53), nullable=False),
        sa.Column("cue_frames", sa.Integer(), nullable=False),
        sa.Column("image_onset_ms", sa.Float(53), nullable=False),
        sa.Column("image_asked_ms", sa.Float(53), nullable=False),
        sa.Column("image_ms", sa.Float(53), nullable=False),
        sa.Column("image_frames", sa.Integer(), nullable=False),
        sa.Column("response_onset_ms", sa.Float(53), nullable=False),
        sa.Column("frames_dropped", sa.Integer(), nullable=False),
        sa.Column("longest_gap_ms", sa.Float(53), nullable=False),
        sa.Column("refresh_hz", sa.Float(53), nullable=False),
        sa.Column("visible", sa.Boolean(), nullable=False),
        sa.Column("focused", sa.Boolean(), nullable=False),
        sa.Column("full_screen", sa.Boolean(), nullable=False),
        sa.Column("flags", sa.String(200), nullable=False),
        sa.Column("received_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session"], ["sessions.id"], name="fk_responses_session", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("session", "seq", name="pk_responses"),
    )
    op.create_table(
        "events",
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("received_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session"], ["sessions.id"], name="fk_events_session", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("session", "seq", name="pk_events"),
    )


def _researchers() -> None:
    op.create_table(
        "researchers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("signed_out_at_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_researchers"),
        sa.UniqueConstraint("name", name="uq_researchers_name"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("researcher", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(64), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["researcher"], ["researchers.id"], name="fk_tokens_researcher", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
    )
    op.create_index("ix_tokens_researcher", "tokens", ["researcher"])
    op.create_table(
        "sign_ins",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("researcher", sa.Integer(), nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["researcher"], ["researchers.id"], name="fk_sign_ins_researcher", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name="pk_sign_ins"),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
    )
