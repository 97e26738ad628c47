"""Whatever goes wrong outside gives a clear state, loses nothing, and is over when its cause is."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from sqlalchemy import text

from live_cases import QUICK, Noted, at_work, state_of, submission, until
from trainyard.live.backends.base import MemberKey, MemberState, RunKey, Seen, Shares
from trainyard.live.backends.local.backend import FencedError as OldBackendError
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.clock import RealClock
from trainyard.live.shell import EndedError
from trainyard.live.store import reading
from trainyard.live.store.log import Batch, FencedError, Store, StoreError
from trainyard.live.store.opening import LOCK_NUMBER, OwnedError, connect


def played(scene):
    """Run an asynchronous test."""
    asyncio.run(asyncio.wait_for(scene, 120.0))


def is_kept(live, job_id):
    with live.controller.store.engine.connect() as connection:
        return reading.job_row(connection, job_id) is not None


async def trouble_comes_and_goes(live, cure, word):
    """A submission waits for the store, which says what it lacks; nothing is begun until it is cured."""
    backend = live.backend
    asked = asyncio.create_task(live.ask(submission("late")))
    await until(lambda: live.shell.store_trouble is not None)
    assert word in live.shell.store_trouble[1]
    assert not asked.done()
    assert state_of(live, "late") is None
    assert ("start", RunKey("late", 1)) not in backend.told
    cure()
    await asked
    await until(lambda: live.shell.store_trouble is None)
    assert is_kept(live, "late")
    await until(lambda: ("start", RunKey("late", 1)) in backend.told)


def test_a_locked_database_is_waited_for(tmp_path, capfd):
    async def scene():
        async with at_work(f"sqlite:///{tmp_path}/store.db", Noted()) as live:
            other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            await trouble_comes_and_goes(live, lambda: other.execute("COMMIT"), "database is locked")
            other.close()

    played(scene())
    said = capfd.readouterr().err.splitlines()
    assert "the store cannot be written: database is locked; what runs goes on" in said[0]
    assert said[-1] == "trainyard: the store can be written again"


def test_a_store_that_is_locked_at_the_start_is_one_clear_line(tmp_path):
    Store(connect(f"sqlite:///{tmp_path}/store.db")).close()
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"^the store cannot be opened: database is locked$"):
        Store(connect(f"sqlite:///{tmp_path}/store.db"))
    other.close()
    Store(connect(f"sqlite:///{tmp_path}/store.db")).close()  # the lock was given back


def test_a_postgres_that_is_not_there_is_one_clear_line():
    with pytest.raises(StoreError, match=r"^the store cannot be opened: .*refused"):
        Store(connect("postgresql+psycopg://nobody@127.0.0.1:1/none"))


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_postgres_that_is_restarted_goes_on(postgres, mode):
    url = postgres.new_database()

    async def scene():
        async with at_work(url, Noted()) as live:
            await live.ask(submission("early"))
            postgres.stop(mode)
            try:
                await trouble_comes_and_goes(live, postgres.start, "")
            except BaseException:
                postgres.start()
                raise
            assert is_kept(live, "early")
            with pytest.raises(OwnedError):  # it has its lock again
                Store(connect(url))

    played(scene())


@pytest.fixture
def small_disk(tmp_path):
    """A disk of four megabytes, with a way to fill it."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs a small tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place):
    with open(place / "filler", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_a_full_disk_under_the_store_is_waited_for(small_disk):
    async def scene():
        async with at_work(f"sqlite:///{small_disk}/store.db", Noted()) as live:
            await live.ask(submission("early"))
            fill(small_disk)
            await trouble_comes_and_goes(live, (small_disk / "filler").unlink, "full")

    played(scene())


def test_a_full_disk_under_the_jobs_is_waited_for(small_disk, tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    settings = replace(QUICK, act_s=20.0)

    async def scene():
        store = Store(connect(url))
        made = store.store_id, store.epoch + 1
        store.close()
        backend = LocalBackend(small_disk / "jobs", *made, settings)
        async with at_work(url, backend, settings) as live:
            fill(small_disk)
            await live.ask(submission("1", command=[sys.executable, "-I", "-S", "-c", "pass"]))
            await until(lambda: "No space left" in live.hands.trouble.get("start 1", ""))
            assert state_of(live, "1") == "running"
            (small_disk / "filler").unlink()
            await until(lambda: state_of(live, "1") == "done")
            assert live.hands.trouble == {}
        for shim in backend._shims:
            shim.wait()
        backend.close()

    played(scene())


# -- the backend ---------------------------------------------------------------------------------------------


def test_a_backend_that_hangs_changes_nothing_and_is_said_to_be_silent(url):
    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            await live.ask(submission("a"))
            await until(lambda: ("start", RunKey("a", 1)) in backend.told and backend.members)
            assert live.eyes.silent_s == 0.0
            backend.answers.clear()
            backend.end("a")
            await until(lambda: live.eyes.silent_s > 0)
            await live.ask(submission("b"))  # it is answered all the same
            assert state_of(live, "a") == "running"
            await until(lambda: live.hands.trouble.get("start b") == "it did not answer in time")
            assert live.eyes.silence == "it did not answer in time"
            backend.answers.set()
            await until(lambda: state_of(live, "a") == "done")
            await until(lambda: MemberKey("b", 1, "n0") in backend.members)
            await until(lambda: live.eyes.silent_s == 0.0 and not live.hands.trouble)
            backend.end("b")
            await until(lambda: state_of(live, "b") == "done")

    played(scene())


def test_a_backend_that_is_silent_at_the_start_proves_nothing(url):
    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            await live.ask(submission("a"))
            await until(lambda: live.controller.started)
        members, again = backend.members, Noted()
        again.silent = "squeue: error"
        async with at_work(url, again) as live:
            assert live.eyes.silence == "squeue: error"
            await live.ask(submission("b", gpus=4))
            assert state_of(live, "a") == "running"
            assert state_of(live, "b") == "waiting"
            again.members = members
            again.end("a", code=0)
            again.silent = ""
            await until(lambda: state_of(live, "a") == "done")
            await until(lambda: ("start", RunKey("b", 1)) in again.told)
            assert ("start", RunKey("a", 1)) not in again.told
            again.end("b")
            await until(lambda: state_of(live, "b") == "done")

    played(scene())


def test_what_the_eyes_cannot_take_in_ends_the_controller(url):
    """A controller that does not look any more must not go on as if all was well."""

    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            live.controller.observe = lambda *_: 1 / 0
            await live.stopped.wait()
            assert isinstance(live.shell.failure, ZeroDivisionError)

    played(scene())


def test_going_down_does_not_wait_for_ever_for_a_backend_that_hangs(url):
    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            await live.ask(submission("a"))
            await until(lambda: live.controller.started)
            assert await live.pause(stop=True) == ["a"]
            assert ("stop", RunKey("a", 1)) in backend.told

    played(scene())


# -- clocks --------------------------------------------------------------------------------------------------


class Clocks:
    """A wall clock and a monotonic one, both set by hand."""

    def __init__(self):
        self.wall_s, self.monotonic_s = 1_000_000.0, 50.0

    def go(self, seconds, jump=0.0):
        self.wall_s += seconds + jump
        self.monotonic_s += seconds

    def clock(self, not_before_s=0.0):
        return RealClock(not_before_s, lambda: self.wall_s, lambda: self.monotonic_s)


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_jump_of_the_wall_clock_changes_no_interval_and_is_said(jump):
    clocks = Clocks()
    clock = clocks.clock()
    clocks.go(10.0)
    assert (clock.now(), clock.ahead_s()) == (1_000_010.0, 0.0)
    clocks.go(5.0, jump)
    assert clock.now() == 1_000_015.0
    assert clock.ahead_s() == -jump


def test_time_does_not_run_back_over_a_restart(url):
    clocks = Clocks()

    async def scene():
        async with at_work(url, Noted(), clock=clocks.clock) as live:
            clocks.go(100.0)
            await live.ask(submission("a"))
        clocks.go(1.0, jump=-3600.0)
        async with at_work(url, Noted(), clock=clocks.clock) as live:
            clocks.go(1.0)
            await live.ask(submission("b"))
            with live.controller.store.engine.connect() as connection:
                times = [t for (t,) in connection.execute(text("SELECT time_s FROM events ORDER BY seq"))]
        assert times == sorted(times)
        assert min(times) == 1_000_100.0

    played(scene())


# -- two controllers -----------------------------------------------------------------------------------------


def test_a_second_controller_is_told_who_has_the_store(url):
    first = Store(connect(url))
    said = (
        rf"store is owned by pid {os.getpid()} on \S+ since \d\d:\d\d \(epoch 1\); trainyard status shows it$"
    )
    with pytest.raises(OwnedError, match=said):
        Store(connect(url))
    first.close()
    second = Store(connect(url))
    assert (second.store_id, second.epoch) == (first.store_id, 2)
    second.close()


def take_over(store):
    """Another controller takes the store, although the old one did not end."""
    with store.engine.connect() as connection:
        connection.execute(text("UPDATE meta SET value = '99' WHERE name = 'epoch'"))
        connection.commit()


def test_an_old_controller_ends_when_a_newer_one_has_taken_over(url):
    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            take_over(live.controller.store)
            with pytest.raises(EndedError, match=r"has taken over \(epoch 99, this one has 1"):
                await live.ask(submission("a"))
            await live.stopped.wait()
            assert isinstance(live.shell.failure, FencedError)
            with pytest.raises(EndedError):
                await live.ask(submission("b"))
        assert backend.told == []

    played(scene())


def test_an_old_controller_does_not_kill_what_a_newer_one_started(url):
    """It knows nothing of these runs, which would make them orphans."""

    async def scene():
        backend = Noted()
        async with at_work(url, backend) as live:
            take_over(live.controller.store)
            backend.members[MemberKey("theirs", 1, "n0")] = Seen(MemberState.RUNNING)
            await live.stopped.wait()
            assert isinstance(live.shell.failure, FencedError)
        assert ("kill", RunKey("theirs", 1)) not in backend.told

    played(scene())


def test_orphans_of_our_own_are_killed(url):
    async def scene():
        backend = Noted()
        async with at_work(url, backend):
            backend.members[MemberKey("ours", 1, "n0")] = Seen(MemberState.RUNNING)
            await until(lambda: ("kill", RunKey("ours", 1)) in backend.told)
            backend.end("ours")
            await until(lambda: ("forget", RunKey("ours", 1)) in backend.told)

    played(scene())


def test_a_postgres_session_that_is_lost_lets_a_newer_controller_in_and_fences_the_old_one(postgres):
    url = postgres.new_database()
    old = Store(connect(url))
    with old.engine.connect() as connection:
        held = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        connection.execute(text(held))
    new = soon(lambda: Store(connect(url)))
    some = Batch(done=[{"b_seq": 1, "b_n": 0, "done_s": 1.0}])
    with pytest.raises(FencedError, match="epoch 2"):
        old.write(some)
    new.close()
    with pytest.raises(FencedError, match="epoch 2, this one has 1"):
        soon(lambda: old.write(some))
    old.close()


def test_a_postgres_that_still_holds_the_lock_of_a_lost_connection_is_waited_for(postgres):
    url = postgres.new_database()
    store, other = Store(connect(url)), connect(url)
    some = Batch(done=[{"b_seq": 1, "b_n": 0, "done_s": 1.0}])
    store.ownership.release()
    with other.connect().execution_options(isolation_level="AUTOCOMMIT") as stale:
        taken = text(f"SELECT pg_try_advisory_lock({LOCK_NUMBER})")
        assert soon_true(lambda: stale.execute(taken).scalar())
        with pytest.raises(StoreError, match="an old connection still holds its lock"):
            store.write(some)
        stale.invalidate()
    store_again(store, some)
    store.close()
    other.dispose()


def soon_true(look):
    last = time.monotonic() + 30.0
    while not (found := look()):
        assert time.monotonic() < last
        time.sleep(0.02)
    return found


def store_again(store, batch):
    """Write as soon as the server has noticed."""
    last = time.monotonic() + 30.0
    while True:
        try:
            return store.write(batch)
        except StoreError:
            assert time.monotonic() < last
            time.sleep(0.02)


def soon(act):
    """Do what needs the lock of somebody who is just being disconnected."""
    last = time.monotonic() + 30.0
    while True:
        try:
            return act()
        except OwnedError:
            assert time.monotonic() < last
            time.sleep(0.02)


def test_an_old_backend_neither_starts_nor_stops_nor_forgets(tmp_path):
    async def scene():
        old = LocalBackend(tmp_path, "store", 1, QUICK)
        new = LocalBackend(tmp_path, "store", 2, QUICK)
        key = RunKey("a", 1)
        retunes = old.retune(key, {"n0": Shares(1.0, 1.0)})
        for act in (old.ensure_stopping(key, 1.0), retunes, old.ensure_gone(key), old.forget(key)):
            with pytest.raises(OldBackendError):
                await act
        with pytest.raises(OldBackendError):
            LocalBackend(tmp_path, "store", 1, QUICK)
        old.close()
        new.close()

    played(scene())
