"""The store: made from nothing, written all or nothing, read again; the same on SQLite and on PostgreSQL."""

import json

import pytest
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from conftest import complaint
from trainyard.errors import TrainyardError
from trainyard.live.store import reading
from trainyard.live.store.log import Batch, Store, StoreError
from trainyard.live.store.migrating import HEAD, version_of
from trainyard.live.store.opening import connect, url_of
from trainyard.live.store.tables import METADATA


@pytest.fixture
def store(url):
    store = Store(connect(url))
    yield store
    store.close()


def event(seq, **more):
    plain = {
        "epoch": 1,
        "time_s": float(seq),
        "kind": "DecisionDue",
        "job_id": None,
        "by": "",
        "record": "{}",
    }
    return plain | {"seq": seq, "answer": "[]", "plan": None, "took_ms": None} | more


def intent(seq, n=0, kind="start", job_id="a", attempt=1):
    about = {"seq": seq, "n": n, "kind": kind, "job_id": job_id, "attempt": attempt}
    return about | {"record": "{}", "done_s": None}


def snapshot(seq):
    return {"seq": seq, "time_s": 0.0, "policy": "fifo", "state": reading.pack({"at": seq})}


def numbers(store, table):
    with store.engine.connect() as connection:
        return [seq for (seq,) in connection.execute(text(f"SELECT seq FROM {table} ORDER BY seq"))]


def test_an_empty_store_gets_all_tables(store):
    with store.engine.connect() as connection:
        assert version_of(connection) == HEAD
        made = inspect(connection)
        for table in METADATA.tables.values():
            columns = {column["name"]: column["nullable"] for column in made.get_columns(table.name)}
            assert columns == {column.name: column.nullable for column in table.columns}
            assert {i["name"] for i in made.get_indexes(table.name)} >= {i.name for i in table.indexes}


def test_a_store_keeps_its_id_and_every_owner_gets_a_higher_epoch(url):
    seen = []
    for _ in range(3):
        store = Store(connect(url))
        seen.append((store.store_id, store.epoch))
        store.close()
    assert [epoch for _, epoch in seen] == [1, 2, 3]
    assert len({store_id for store_id, _ in seen}) == 1


def test_a_store_of_a_newer_program_is_left_alone(url, spoilt):
    spoilt.add(url)
    Store(connect(url)).close()
    engine = connect(url)
    with engine.connect() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    engine.dispose()
    with pytest.raises(TrainyardError, match="is of version 9999, newer than this program"):
        Store(connect(url))


def test_a_batch_is_written_whole_or_not_at_all(store, spoilt):
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    store.write(Batch(events=[event(1), event(2)], intents=[intent(2)]))
    twice = Batch(events=[event(3)], intents=[intent(3), intent(3)])
    with pytest.raises(TrainyardError, match="the store contradicts what is to be written"):
        store.write(twice)
    assert numbers(store, "events") == [1, 2]
    assert numbers(store, "intents") == [2]


@pytest.mark.parametrize("first", [1, 2, 4])
def test_events_follow_each_other_without_gaps(store, first, spoilt):
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    store.write(Batch(events=[event(1), event(2)]))
    with pytest.raises(TrainyardError, match=f"the store ends with event 2: {first} cannot follow"):
        store.write(Batch(events=[event(first)]))
    store.write(Batch(events=[event(3)]))
    assert numbers(store, "events") == [1, 2, 3]


@pytest.mark.parametrize(
    "batch", [Batch(events=[event(1)], snapshots=[snapshot(1)]), Batch(snapshots=[snapshot(0)])]
)
def test_a_commit_that_seemed_to_fail_is_not_repeated(store, batch, monkeypatch, spoilt):
    """The connection may be lost after the commit and before its answer."""
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    hold = store.ownership.hold

    def lose_answer():
        monkeypatch.setattr(store.ownership, "hold", hold)
        store.write(batch)
        raise OperationalError("COMMIT", {}, Exception("server closed the connection"))

    monkeypatch.setattr(store.ownership, "hold", lose_answer)
    with pytest.raises(StoreError, match="server closed the connection"):
        store.write(batch)
    store.write(batch)
    assert numbers(store, "events") == [row["seq"] for row in batch.events]
    assert numbers(store, "snapshots") == [row["seq"] for row in batch.snapshots]


def test_the_first_snapshot_and_the_last_two_are_kept(store, spoilt):
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    for seq in range(6):
        events = [event(seq)] if seq else []
        store.write(Batch(events=events, snapshots=[snapshot(seq)]))
    assert numbers(store, "snapshots") == [0, 4, 5]
    with store.engine.connect() as connection:
        assert reading.first_snapshot(connection).state == {"at": 0}
        assert reading.latest_snapshot(connection).state == {"at": 5}


def test_intents_are_open_until_they_are_marked(store, spoilt):
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    rows = [intent(1), intent(1, 1, "stop", "b", 2)]
    store.write(Batch(events=[event(1)], intents=rows))
    store.write(Batch(events=[event(2)], intents=[intent(2, 0, "kill")]))
    store.write(Batch(done=[{"b_seq": 1, "b_n": 0, "done_s": 7.0}]))
    with store.engine.connect() as connection:
        left = [(row["seq"], row["n"]) for row in reading.open_intents(connection)]
        named = reading.named_intents(connection, 1)
        starts = reading.starts_of(connection, ["a", "c"])
    assert left == [(1, 1), (2, 0)]
    assert named == {2: [(0, "kill", "a", 1)]}
    assert [row["seq"] for row in starts] == [1]


def test_a_request_is_found_by_its_key(store, spoilt):
    spoilt.add(store.engine.url.render_as_string(hide_password=False))
    job = {"number": 1, "job_id": "a", "request_key": "k", "name": "n", "user": "ann", "tenant": "t"}
    job |= {"submitted_s": 1.0, "spec": "{}", "state": "active", "finished_s": None, "view": None}
    store.write(Batch(events=[event(1)], jobs=[job]))
    with store.engine.connect() as connection:
        assert reading.job_of_request(connection, "k") == "a"
        assert reading.job_of_request(connection, "other") is None
        assert [row["job_id"] for row in reading.active_jobs(connection)] == ["a"]
        assert reading.last_number(connection) == 1
    over = {"b_job_id": "a", "state": "done", "finished_s": 5.0, "view": json.dumps({"job_id": "a"})}
    store.write(Batch(ended_jobs=[over]))
    with store.engine.connect() as connection:
        assert reading.active_jobs(connection) == []
        assert reading.ended_jobs(connection) == [{"job_id": "a"}]
        assert reading.ended_jobs(connection, since_s=6.0) == []


def test_an_empty_batch_is_nothing():
    assert not Batch()
    assert Batch(done=[{}])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mysql://a@b/c", "--store: mysql is not supported; use postgresql:// or sqlite:///"),
        ("nonsense", "--store: this is no URL; write postgresql://USER@HOST/DATABASE or sqlite:///FILE"),
        ("env:NOBODY_SET_THIS", "--store env:NOBODY_SET_THIS: the variable NOBODY_SET_THIS is not set"),
        ("file:/nowhere/at/all", "--store file:/nowhere/at/all: No such file or directory"),
        ("postgresql://a:secret@b/c", "--store: a password on the command line is seen by everybody in ps"),
    ],
)
def test_a_bad_store_is_one_line(given, said):
    line = complaint(url_of, given)
    assert said in line
    assert "secret" not in line


def test_a_url_may_come_from_the_environment_or_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("STORE", "postgresql://a:secret@b/c")
    assert url_of("env:STORE") == "postgresql+psycopg://a:secret@b/c"
    (tmp_path / "url").write_text("postgres://a@b/c\n")
    assert url_of(f"file:{tmp_path / 'url'}") == "postgresql+psycopg://a@b/c"
    assert url_of("sqlite:////tmp/x.db") == "sqlite:////tmp/x.db"
