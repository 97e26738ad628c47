"""The controller's thread: several requests in one transaction, answers after the commit, decisions apart."""

import asyncio
import threading

import pytest
from sqlalchemy import text

from live_cases import Noted, at_work, state_of, submission, until
from trainyard.errors import TrainyardError
from trainyard.live.backends.base import RunKey
from trainyard.live.controller import BrokenError
from trainyard.live.shell import EndedError
from trainyard.live.store import reading


def played(scene, url, **more):
    async def play():
        async with at_work(url, Noted(), **more) as live:
            await scene(live)

    asyncio.run(asyncio.wait_for(play(), 60.0))


def writes_of(live):
    """Note every transaction: how many events it has, and what is answered by then."""
    write, seen = live.controller.store.write, []

    def noted(batch):
        write(batch)
        seen.append([row["kind"] for row in batch.events])

    live.controller.store.write = noted
    return seen


def test_what_waits_together_is_committed_together(url):
    async def scene(live):
        seen, gate = writes_of(live), threading.Event()
        first = live.shell.ask(lambda controller: gate.wait(30.0))
        rest = [live.shell.ask(submission(f"j{i}")) for i in range(5)]
        gate.set()
        for each in (first, *rest):
            await asyncio.wrap_future(each)
        submitted = [kinds for kinds in seen if "JobSubmitted" in kinds]
        assert sum(map(len, submitted)) == 5
        assert len(submitted) < 5

    played(scene, url)


def test_a_submission_is_answered_before_the_decision_that_follows_it(url):
    async def scene(live):
        controller, decided = live.controller, threading.Event()
        decide, gate = controller.decide, threading.Event()

        def wait_and_decide():
            gate.wait(30.0)
            decide()
            decided.set()

        controller.decide = wait_and_decide
        await live.ask(submission("a"))
        assert not decided.is_set()
        assert state_of(live, "a") == "waiting"
        with controller.store.engine.connect() as connection:
            assert reading.job_row(connection, "a") is not None
            asked = "SELECT kind FROM events WHERE kind = 'DecisionDue'"
            assert connection.execute(text(asked)).all() == []
        gate.set()
        await until(lambda: state_of(live, "a") == "running")

    played(scene, url)


def test_nothing_is_done_outside_before_the_commit(url):
    async def scene(live):
        write, gate, backend = live.controller.store.write, threading.Event(), live.backend

        def slow(batch):
            if any(row["kind"] == "DecisionDue" for row in batch.events):
                gate.wait(30.0)
            write(batch)

        live.controller.store.write = slow
        await live.ask(submission("a"))
        await asyncio.sleep(0.1)
        assert backend.told == []
        assert state_of(live, "a") == "waiting"
        gate.set()
        await until(lambda: ("start", RunKey("a", 1)) in backend.told)

    played(scene, url)


def test_a_refusal_is_for_who_asked_and_for_nobody_else(url):
    async def scene(live):
        def refuse(controller):
            raise TrainyardError("no such node")

        with pytest.raises(TrainyardError, match="no such node"):
            await live.ask(refuse)
        await live.ask(submission("a"))

    played(scene, url)


def test_what_nobody_waits_for_any_more_is_not_begun(url):
    async def scene(live):
        gate = threading.Event()
        first = live.shell.ask(lambda controller: gate.wait(30.0))
        given_up = live.shell.ask(submission("a"))
        assert given_up.cancel()
        gate.set()
        await asyncio.wrap_future(first)
        await live.ask(lambda controller: None)
        assert state_of(live, "a") is None

    played(scene, url)


def test_a_core_that_fails_ends_the_controller_and_answers_everybody(url):
    async def scene(live):
        gate = threading.Event()

        def fail(controller):
            gate.wait(30.0)
            raise BrokenError("half done")

        asked = [live.shell.ask(fail), live.shell.ask(submission("a")), live.shell.ask(submission("b"))]
        gate.set()
        for each in asked:
            with pytest.raises(EndedError, match="the controller has ended: half done"):
                await asyncio.wrap_future(each)
        await live.stopped.wait()
        with pytest.raises(EndedError):
            await live.ask(submission("c"))
        assert isinstance(live.shell.failure, BrokenError)

    played(scene, url)
