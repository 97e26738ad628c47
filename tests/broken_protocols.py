"""Three mistakes of a protocol, made on purpose: whoever tests the protocol has to notice each, every time.

Each comes with lives that lead to the mistake for certain. With the right protocol the same lives do no harm.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from kill_cases import Broken, Errand, Found, Plan, end_everything, one_life
from kill_checks import look_at
from trainyard.live.backends.base import MemberKey, MemberState, Observation, RunKey, Seen
from trainyard.live.backends.local.backend import LocalBackend
from trainyard.live.controller import Controller

PATIENCE_S = 20.0
ENOUGH = 8  # looks: a controller that saw its job end would be over long before


def act_before_commit(controller: Controller, backend: LocalBackend) -> None:
    """Start processes first, and write that down afterwards."""
    commit = controller.commit

    def act_first() -> None:
        intents, controller.ledger.intents = controller.ledger.intents, []
        if intents:
            controller.outbox(intents)
        for intent in intents:
            for node, *_ in intent.record.get("members", ()):
                member = backend.layout.member(MemberKey(*intent.key, node))
                _await(member / "shim.json", member / "exit.json")
        commit()

    controller.commit = act_first  # type: ignore[method-assign]


def no_single_start(controller: Controller, backend: LocalBackend) -> None:
    """Have shims that start workers even if another one did."""
    backend._shim = _shim_without_lock(backend._shim)


def _shim_without_lock(archive: Path) -> Path:
    broken = archive.with_name("broken.pyz")
    changes = {
        'if lock is None or os.path.exists("exit.json") or not begins():': "if False:",
        "assert alive is not None": "alive = alive or 0",
    }
    with zipfile.ZipFile(archive) as good, zipfile.ZipFile(broken, "w") as bad:
        for name in good.namelist():
            source = good.read(name).decode()
            for right, wrong in changes.items() if name == "shim/life.py" else ():
                assert source.count(right) == 1, f"the shim has no '{right}' any more"
                source = source.replace(right, wrong)
            bad.writestr(name, source)
    return broken


def downtime_unseen(controller: Controller, backend: LocalBackend) -> None:
    """See what ends, but not what has ended while nobody looked."""
    observe = backend.observe
    before: list[set[MemberKey]] = []
    looks: list[float] = []

    async def look(only: Collection[RunKey] | None = None) -> Observation:
        seen = await observe(only)
        assert isinstance(seen, Observation)
        if not before:
            before.append({key for key, each in seen.members.items() if each.state is MemberState.EXITED})
        looks.append(time.monotonic())
        if len(looks) == ENOUGH:
            (backend.layout.root / "looked").touch()
        running = dict.fromkeys(before[0] & set(seen.members), Seen(MemberState.RUNNING))
        return Observation({**seen.members, **running}, seen.progress)

    backend.observe = look  # type: ignore[method-assign]


def _await(*paths: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not any(path.exists() for path in paths):
        assert time.monotonic() < until, f"there is no {paths[0]}"
        time.sleep(0.01)


def _looked_on(root: Path) -> bool:
    return (root / "looked").exists()


def _ran_twice(root: Path) -> bool:
    history = root / "jobs" / "1" / "checkpoint" / "history"
    return history.exists() and "TWICE" in history.read_text()


def _job_over(plan: Plan) -> None:
    _await(plan.root / "jobs" / "1" / "1" / "n0" / "exit.json")


@dataclass(frozen=True)
class Mistake:
    """A broken protocol, and lives that show it."""

    broken: Broken
    script: Sequence[Errand | Callable[[Plan], None]]
    steps: int
    evidence: str  # in what is found to be wrong


MISTAKES = {
    # What was started before the crash is not in the log; the next controller starts it on other nodes.
    "act before commit": Mistake(
        act_before_commit,
        (Errand(dies=("before commit", 3)), Errand(nodes=("n1", "n2"))),
        60,
        "nobody wrote down: start",
    ),
    # Nobody knows that the start was carried out, so it is carried out again.
    "no single-start lock": Mistake(
        no_single_start,
        (Errand(dies=("after spawn", 1)), Errand(until=_ran_twice)),
        60,
        "ran twice at once",
    ),
    # The job ends between two controllers.
    "exits during downtime unseen": Mistake(
        downtime_unseen,
        (Errand(dies=("after act", 1)), _job_over, Errand(until=_looked_on)),
        10,
        "job 1 is active, not done",
    ),
}


def play(name: str, root: Path, url: str, broken: bool) -> Found:
    """Lead one job through the lives of a mistake, with the broken protocol or with the right one."""
    mistake, found = MISTAKES[name], Found()
    plan = Plan(2, root, url, 0, jobs=1, steps=mistake.steps)
    if broken:
        plan.broken = mistake.broken
    root.mkdir(parents=True, exist_ok=True)
    try:
        for step in mistake.script:
            if isinstance(step, Errand):
                one_life(plan, step, found, Random(0))
            else:
                step(plan)
        look_at(plan, found)
    finally:
        end_everything(plan)
    return found
