"""Carrying out what was committed: until it is done, in order, and not after the end."""

import asyncio

from live_cases import QUICK, Noted, until
from trainyard.live.backends.base import RunKey
from trainyard.live.hands import Hands
from trainyard.live.intents import Intent
from trainyard.live.observing import Todo

KEY = RunKey("a", 1)
RECORDS = {
    "start": {"members": [["n0", [0], 0, 1.0, 1.0]], "batch_shares": [1.0], "lr_scale": 1.0},
    "stop": {"grace_s": 1.0},
    "fence": {"node": "n0"},
}


def intent(kind, n=0):
    return Intent(1, n, kind, "a", 1, RECORDS.get(kind, {}))


def played(scene):
    """Give a scene hands, their backend, and what is marked and fenced."""

    async def play():
        backend, marked, fenced = Noted(), [], []
        hands = Hands(backend, lambda job_id: {}, lambda i, at: marked.append(i), fenced.append, QUICK)
        await scene(hands, backend, marked, fenced)
        hands.close()

    asyncio.run(asyncio.wait_for(play(), 60.0))


def test_what_fails_is_done_again_and_says_why_until_then():
    async def scene(hands, backend, marked, fenced):
        backend.troubles = [OSError("no room"), TimeoutError(), OSError()]
        hands.take([intent("start")])
        await until(lambda: hands.trouble.get("start a") == "no room")
        await until(lambda: marked)
        assert marked == [intent("start")]
        assert backend.told == [("start", KEY)] * 4
        assert hands.trouble == {}

    played(scene)


def test_a_stop_waits_for_the_start_and_a_kill_for_nothing():
    async def scene(hands, backend, marked, fenced):
        backend.answers.clear()
        hands.take([intent("start"), intent("stop", 1), intent("kill", 2)])
        await until(lambda: len(backend.told) == 2)
        assert backend.told == [("start", KEY), ("kill", KEY)]
        backend.answers.set()
        await until(lambda: len(marked) == 3)
        assert backend.told[-1] == ("stop", KEY)

    played(scene)


def test_a_node_is_fenced_only_when_that_is_certain():
    async def scene(hands, backend, marked, fenced):
        backend.fences = False
        hands.take([intent("fence")])
        await until(lambda: backend.told.count(("fence", "n0")) > 2)
        assert (marked, fenced) == ([], [])
        assert "not certain yet" in next(iter(hands.trouble.values()))
        backend.fences = True
        await until(lambda: marked)
        assert fenced == ["n0"]

    played(scene)


def test_nothing_is_begun_after_the_end():
    """The last commit may ask for something when the backend is closed already."""

    async def scene(hands, backend, marked, fenced):
        hands.close()
        hands.take([intent("start")])
        await asyncio.sleep(0)
        assert not hands._tasks
        assert backend.told == []

    played(scene)


def test_a_task_that_misses_its_end_does_not_go_on_for_ever():
    async def scene(hands, backend, marked, fenced):
        backend.troubles = [OSError("closed")] * 1000
        hands.take([intent("start")])
        await until(lambda: backend.told)
        hands._closed = True  # as if being cancelled had been missed
        await until(lambda: not hands._tasks)
        assert marked == []

    played(scene)


def test_what_a_look_asks_for_is_not_done_too_often():
    async def scene(hands, backend, marked, fenced):
        todo = Todo([], [], [KEY], [], [])
        for _ in range(5):
            hands.do(todo, lambda job_id: 1.0)
        await until(lambda: backend.told)
        assert backend.told == [("stop", KEY)]
        await asyncio.sleep(QUICK.again_s)
        hands.do(todo, lambda job_id: 1.0)
        await until(lambda: len(backend.told) == 2)

    played(scene)


def test_forgetting_a_run_forgets_its_troubles():
    async def scene(hands, backend, marked, fenced):
        backend.troubles = [OSError("late")]
        hands.do(Todo([], [], [KEY], [], []), lambda job_id: 1.0)
        await until(lambda: hands.trouble)
        hands.forget([KEY])
        await until(lambda: ("forget", KEY) in backend.told)
        assert hands.trouble == {}
        assert hands._repeated == {}

    played(scene)
