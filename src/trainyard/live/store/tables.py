"""The tables of the store. Texts are JSON unless said otherwise; times are Unix seconds."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

METADATA = MetaData()
# SQLite counts up by itself only what is called INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")

META = Table(
    "meta",
    METADATA,
    Column("name", String, primary_key=True),  # store_id, epoch, ...
    Column("value", Text, nullable=False),
)

EVENTS = Table(  # everything that the core was told, with what it answered
    "events",
    METADATA,
    Column("seq", Number, primary_key=True, autoincrement=False),  # counts up without gaps, from 1
    Column("epoch", Integer, nullable=False),
    Column("time_s", Double, nullable=False),
    Column("kind", String, nullable=False),
    Column("job_id", String),
    Column("by", String, nullable=False),  # a user, or a part of the controller
    Column("record", Text, nullable=False),
    Column("answer", Text, nullable=False),  # the instructions
    Column("plan", Text),  # of a decision
    Column("took_ms", Double),  # a decision
    Index("events_by_kind", "kind", "seq"),
)

INTENTS = Table(  # what has to be done outside, and whether it is done
    "intents",
    METADATA,
    Column("seq", Number, primary_key=True, autoincrement=False),  # of its event
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("job_id", String),
    Column("attempt", Integer),
    Column("record", Text, nullable=False),
    Column("done_s", Double),
    Index("intents_by_job", "job_id"),
    Index(
        "intents_open",
        "seq",
        "n",
        sqlite_where=text("done_s IS NULL"),
        postgresql_where=text("done_s IS NULL"),
    ),
)

JOBS = Table(  # what users submitted, and of jobs that are over how that was
    "jobs",
    METADATA,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("job_id", String, nullable=False, unique=True),
    Column("request_key", String, unique=True),
    Column("name", String, nullable=False),
    Column("user", String, nullable=False),
    Column("tenant", String, nullable=False),
    Column("submitted_s", Double, nullable=False),
    Column("spec", Text, nullable=False),
    Column("state", String, nullable=False),  # of a job that is not over: "active"
    Column("finished_s", Double),
    Column("view", Text),  # the job as users see it, once it is over
    Index("jobs_by_state", "state", "number"),
    Index("jobs_by_finish", "finished_s"),
)

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("job_id", String, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("started_s", Double, nullable=False),
    Column("nodes", Text, nullable=False),
    Column("ended_s", Double),
    Column("code", String),  # how it ended, a stable word
    Column("text", Text),  # plain text
    Column("exit_code", Integer),
    Column("exit_signal", Integer),
    Column("samples_done", Double),
)

STORY = Table(  # what happened to jobs, for people
    "story",
    METADATA,
    Column("seq", Number, primary_key=True, autoincrement=False),  # of its event
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("time_s", Double, nullable=False),
    Column("job_id", String, nullable=False),
    Column("state", String, nullable=False),
    Column("text", Text, nullable=False),  # plain text
    Index("story_by_job", "job_id", "seq", "n"),
)

SNAPSHOTS = Table(  # the core after an event
    "snapshots",
    METADATA,
    Column("seq", Number, primary_key=True, autoincrement=False),
    Column("time_s", Double, nullable=False),
    Column("policy", String, nullable=False),
    Column("state", LargeBinary, nullable=False),  # compressed JSON
)
