"""A running controller: store, core, backend, and what connects them. The API stands on top of this."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from trainyard.core.events import DecisionsPaused, NodeFenced
from trainyard.core.yard import Yard
from trainyard.live.adjusting import adjustments, told, unlike
from trainyard.live.backends.base import Backend, MemberState, Observation, RunKey
from trainyard.live.clock import Clock, RealClock
from trainyard.live.controller import Controller
from trainyard.live.deciding import Decider
from trainyard.live.eyes import Eyes, Runs
from trainyard.live.hands import Hands
from trainyard.live.intents import Intent
from trainyard.live.labels import Label, nothing
from trainyard.live.observing import Todo
from trainyard.live.recovery import restore_books, restore_yard
from trainyard.live.settings import Settings
from trainyard.live.shell import Shell
from trainyard.live.store.log import Store
from trainyard.model.cluster import Cluster
from trainyard.model.rules import Rules

T = TypeVar("T")
LOOK_S = 0.1  # while everything stops


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` was told."""

    cluster: Cluster | None  # None: as the store knows it
    policy: str | None  # None: as the store knows it
    round_s: float | None = None
    seed: int = 0
    settings: Settings = field(default_factory=Settings)

    def rules(self) -> dict[str, float | int | None]:
        """Return the core's rules."""
        return {"round_s": self.round_s, "seed": self.seed, **self.settings.rules()}


def make_controller(
    store: Store,
    options: Options,
    default: tuple[Cluster, str],
    clock: Callable[[float], Clock] = RealClock,
    at: Label = nothing,
    decider: Decider | None = None,
) -> tuple[Controller, list[Intent], list[Intent], list[str]]:
    """Make the controller of a store, new or as it was.

    Returns what has to be done again, how all runs were started, and notes for whoever started it. `default`
    are the cluster and the policy of a new store; `clock` makes a clock that does not go before a time.
    """
    decider = decider or Decider()
    with store.engine.connect() as connection:
        found = restore_yard(connection, decider)
        if found is None:
            controller = _new(store, options, default, decider, clock(0.0), at)
            opened: list[Intent] = []
            starts: list[Intent] = []
        else:
            yard, policy, seq, snapshot_seq = found
            controller = Controller(
                store, yard, decider, policy, clock(yard.now_s), options.settings, _nobody, at
            )
            controller.ledger.seq, controller.snapshot_seq = seq, snapshot_seq
            opened, starts = restore_books(connection, controller)
    at("recovered")
    notes = _adjust(controller, options)
    return controller, opened, starts, notes


def _nobody(_: Sequence[Intent]) -> None:
    raise AssertionError("nobody takes the intents yet")


def _new(
    store: Store, options: Options, default: tuple[Cluster, str], decider: Decider, clock: Clock, at: Label
) -> Controller:
    policy = decider.policy(options.policy or default[1])
    yard = Yard(
        options.cluster or default[0],
        policy.decide,
        Rules(**options.rules()),  # type: ignore[arg-type]
        half_life_s=policy.order.half_life_s,
        indices=True,
        remember=options.settings.remember,
        policies=decider.policy,
    )
    name = options.policy or default[1]
    controller = Controller(store, yard, decider, name, clock, options.settings, _nobody, at)
    controller.take_snapshot()
    controller.commit()
    return controller


def _adjust(controller: Controller, options: Options) -> list[str]:
    """Bring what the store knows to what was asked for; return what to say of it."""
    yard, now = controller.yard, controller.clock.now()
    events = adjustments(yard, controller.policy, options.cluster, options.policy, options.rules(), now)
    notes = []
    for event in list(events):
        controller.tell(event, "up")
        notes.append(told(event))
    return [note for note in notes if note] + (
        unlike(yard, options.cluster) if options.cluster is not None else []
    )


class Live:
    """A controller at work, with a backend, in the running event loop."""

    def __init__(self, controller: Controller, backend: Backend, at: Label = nothing) -> None:
        self.controller, self.backend = controller, backend
        self.loop = asyncio.get_running_loop()
        self.shell = Shell(controller, self._forget)
        self.hands = Hands(backend, self._spec, self._mark, self._fenced, controller.settings, at)
        self.eyes = Eyes(backend, self._observed, controller.settings)
        self.stopped = asyncio.Event()
        self.shell.ended = lambda: self._in_loop(self.stopped.set)
        controller.outbox = lambda intents: self._in_loop(self.hands.take, intents)

    @contextlib.asynccontextmanager
    async def running(self, opened: Sequence[Intent], starts: Sequence[Intent]) -> AsyncIterator[Live]:
        """Work: first what was left undone, then a look at everything, then decisions."""
        await self.begin(opened, starts)
        self.shell.start()
        looking = asyncio.create_task(self.eyes.run())
        looking.add_done_callback(self._blind)
        try:
            yield self
        finally:
            await _end(looking)
            self.hands.close()
            await asyncio.to_thread(self.shell.close)

    async def begin(self, opened: Sequence[Intent], starts: Sequence[Intent]) -> None:
        """Do what was left undone, and look at everything."""
        self.hands.know(starts)
        self.hands.take(opened)
        self.controller.commit()
        self.controller.publish_all()
        await self._first_look()

    def _blind(self, looking: asyncio.Task[None]) -> None:
        """Who cannot look any more must not go on."""
        if not looking.cancelled() and (error := looking.exception()) is not None:
            self.shell.failure = self.shell.failure or error
            self.stopped.set()

    async def _first_look(self) -> None:
        """See what ended while nobody looked, before anything is decided."""
        look = await self.eyes.look(None)
        if look is None:
            return
        todo = self.controller.observe(*look)
        self.controller.at("reconciled")
        self.controller.commit()
        over, self.controller.forgettable = self.controller.forgettable, []
        self.hands.forget(over)
        self._do(look[0], todo)

    async def look(self, only: Runs = None) -> None:
        """Look at everything, or at some runs, and take in what is seen."""
        if (look := await self.eyes.look(only)) is not None:
            await self._observed(*look, only)

    async def _observed(self, seen: Observation, began: float, only: Runs) -> None:
        self._do(seen, await self.ask(lambda controller: controller.observe(seen, began, only)))

    def _do(self, seen: Observation, todo: Todo) -> None:
        gone = {key for key in todo.orphans if _is_gone(seen, key)}
        self.hands.forget(sorted(gone))
        rest = [key for key in todo.orphans if key not in gone]
        self.hands.do(todo._replace(orphans=rest), self.controller.ledger.grace_s)

    # -- between the threads ----------------------------------------------------------------------

    async def ask(self, ask: Callable[[Controller], T]) -> T:
        """Have something done in the controller's thread; the answer comes after the commit."""
        return await asyncio.wrap_future(self.shell.ask(ask))

    def _in_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: this is the end
            self.loop.call_soon_threadsafe(function, *arguments)

    def _forget(self, keys: list[RunKey]) -> None:
        self._in_loop(self.hands.forget, keys)

    def _mark(self, intent: Intent, at: float) -> None:
        self.shell.ask(lambda controller: controller.mark_done([intent], at))

    def _fenced(self, node: str) -> None:
        self.shell.ask(
            lambda controller: controller.tell(NodeFenced(controller.clock.now(), node), "backend")
        )

    def _spec(self, job_id: str) -> Mapping[str, Any]:
        return self.controller.ledger.infos[job_id].spec

    # -- going down ----------------------------------------------------------------------

    async def pause(self, stop: bool) -> list[str]:
        """Decide no more; with `stop` everything that runs saves its work, and this waits for it.

        Returns what still runs: more time than jobs have to save, and the backend to act, is not given.
        """
        await self.ask(
            lambda controller: controller.tell(DecisionsPaused(controller.clock.now(), stop), "down")
        )
        left = await self.ask(_running) if stop else {}
        until = time.monotonic() + max(left.values(), default=0.0) + 2 * self.controller.settings.act_s
        while left and time.monotonic() < until:
            await asyncio.sleep(LOOK_S)
            left = await self.ask(_running)
        return sorted(left)

    async def write_snapshot(self) -> None:
        """Write the core down, so that the next start has nothing to replay."""
        await self.ask(lambda controller: controller.take_snapshot())


async def _end(task: asyncio.Task[None]) -> None:
    """End a task; it may miss that it is cancelled, if what it waits for with a limit is just ready."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=LOOK_S)


def _running(controller: Controller) -> dict[str, float]:
    """What runs, with the longest time that it may take to stop."""
    settings = controller.settings
    return {
        record.job_id: max(controller.ledger.grace_s(record.job_id), settings.most_grace_s)
        for record in controller.observer.records()
    }


def _is_gone(seen: Observation, key: RunKey) -> bool:
    """Whether all members of a run that a look showed are over."""
    return all(s.state is MemberState.EXITED for member, s in seen.members.items() if member.run == key)
