"""The first tables.

They are written out here and never change, whatever the tables of a later version look like.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = sa.text("done_s IS NULL")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "meta",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("time_s", sa.Double, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("job_id", sa.String),
        sa.Column("by", sa.String, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("plan", sa.Text),
        sa.Column("took_ms", sa.Double),
    )
    op.create_index("events_by_kind", "events", ["kind", "seq"])
    op.create_table(
        "intents",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("job_id", sa.String),
        sa.Column("attempt", sa.Integer),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("done_s", sa.Double),
    )
    op.create_index("intents_by_job", "intents", ["job_id"])
    op.create_index("intents_open", "intents", ["seq", "n"], sqlite_where=OPEN, postgresql_where=OPEN)
    _create_tables_of_jobs()
    op.create_table(
        "snapshots",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("time_s", sa.Double, nullable=False),
        sa.Column("policy", sa.String, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
    )


def _create_tables_of_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("job_id", sa.String, nullable=False, unique=True),
        sa.Column("request_key", sa.String, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("user", sa.String, nullable=False),
        sa.Column("tenant", sa.String, nullable=False),
        sa.Column("submitted_s", sa.Double, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("finished_s", sa.Double),
        sa.Column("view", sa.Text),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "number"])
    op.create_index("jobs_by_finish", "jobs", ["finished_s"])
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("started_s", sa.Double, nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("ended_s", sa.Double),
        sa.Column("code", sa.String),
        sa.Column("text", sa.Text),
        sa.Column("exit_code", sa.Integer),
        sa.Column("exit_signal", sa.Integer),
        sa.Column("samples_done", sa.Double),
    )
    op.create_table(
        "story",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time_s", sa.Double, nullable=False),
        sa.Column("job_id", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("story_by_job", "story", ["job_id", "seq", "n"])
