"""Lessons: what a teacher decided, as the single actions that lead there.

A teacher is any policy of this project, or any scheduler whose decisions were written down. It says how big
each job is in a slot; to imitate it one needs the steps. Of all that lead there the one comes next with which
a few tasks save most delay for their share of the cluster, so that what was given is of most use wherever
the steps end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from trainyard.learn.episode import Scenario
from trainyard.model.allocation import Allocation
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import ACTIONS, Singles
from trainyard.policy.size.dl2.features import Features, ahead
from trainyard.policy.size.dl2.slot import BOTH, SERVER, STOP, WORKER, Slots
from trainyard.policy.stages import Shapes
from trainyard.sim.clock import Simulator
from trainyard.state.snapshot import Snapshot


class Moment(NamedTuple):
    """The beginning of a slot, and what the teacher decided; the snapshot is good until the next moment."""

    snapshot: Snapshot
    ranked: Ints  # rows of the job table, in the learner's order
    slot_s: float
    shapes: Shapes  # of the ranked jobs


class Lessons(NamedTuple):
    """Some decisions: what was seen (copies) and the right action of each."""

    jobs: Singles  # (n, J, features of a job)
    cluster: Singles  # (n, features of a cluster)
    mask: Mask  # (n, 1 + 3 J)
    actions: Ints  # (n,)


def watch(scenario: Scenario, teacher: Policy, learner: Policy | None = None) -> Iterator[Moment]:
    """Run a teacher through a scenario; `learner` says in which order jobs are seen."""
    learner = learner or Policy("dl2")
    cluster, jobs, speed = scenario.cluster, scenario.jobs, scenario.speed
    simulator = Simulator(cluster, jobs, teacher, scenario.options, speed=speed)
    while simulator.advance():
        snapshot = simulator.yard.snapshot(simulator.now_s)
        if len(snapshot.table):
            ranked = learner.ranked(snapshot)
            shapes = shapes_of(snapshot, ranked, teacher.decide(snapshot).allocations(snapshot.target))
            yield Moment(snapshot, ranked, scenario.slot_s, shapes)
        simulator.decide()


def shapes_of(snapshot: Snapshot, ranked: Ints, plan: dict[str, Allocation]) -> Shapes:
    """Return how big a plan makes each ranked job."""
    held = [plan.get(snapshot.table.jobs[row].job_id) for row in ranked.tolist()]
    numbers = [(0, 0) if a is None else (a.gpus, a.servers) for a in held]
    gpus, servers = np.array(numbers, dtype=np.int64).reshape(-1, 2).T
    return Shapes(gpus, servers)


def lessons(
    moments: Iterable[Moment], batch: int = 32, features: Features | None = None
) -> Iterator[Lessons]:
    """Yield decisions, up to one of each slot at a time; slots without a choice give none."""
    slots, source = Slots(batch, features or Features()), iter(moments)
    aims: list[Shapes | None] = [None] * batch
    while True:
        for b in range(batch):
            if aims[b] is None:
                aims[b] = _open(slots, b, source)
        going = np.array([b for b, aim in enumerate(aims) if aim is not None], dtype=np.int64)
        if not going.size:
            return
        seen = slots.observe()
        actions = toward(slots, aims, seen.mask)
        chosen = going[seen.mask[going, 1:].any(axis=1)]
        if chosen.size:
            yield Lessons(seen.jobs[chosen], seen.cluster[chosen], seen.mask[chosen], actions[chosen])
        for b in going[actions[going] == STOP].tolist():
            aims[b] = None
            slots.clear(b)
        steps = going[actions[going] != STOP]
        if steps.size:
            slots.act(steps, actions[steps])


def _open(slots: Slots, b: int, source: Iterator[Moment]) -> Shapes | None:
    moment = next(source, None)
    if moment is None:
        return None
    slots.open(b, moment.snapshot, moment.ranked, moment.slot_s)
    return moment.shapes


def toward(slots: Slots, aims: list[Shapes | None], mask: Mask) -> Ints:
    """Return the next action of each slot on the way to the shapes aimed at; stop if there is none."""
    aim: Ints = np.zeros((2, slots.batch, slots.width), dtype=np.int64)
    for b, shapes in enumerate(aims):
        if shapes is not None:
            aim[0, b, : shapes.gpus.size] = shapes.gpus
            aim[1, b, : shapes.gpus.size] = shapes.gpus if shapes.servers is None else shapes.servers
    has = np.stack([slots.jobs.workers, slots.jobs.servers])
    wanted = _wanted(has, aim, slots.kinds.apart[slots.jobs.kind])
    legal = wanted & mask[:, 1:].reshape(slots.batch, slots.width, ACTIONS)
    saved = np.where(legal, _saved(slots), -np.inf).reshape(slots.batch, -1)
    best = saved.argmax(axis=1)
    return np.where(np.isfinite(saved.max(axis=1)), 1 + best, STOP)


def _wanted(has: Ints, aim: Ints, apart: Mask) -> Mask:
    """Whether each action (B, J, 3) is on the way."""
    lacks = has < aim
    wanted: Mask = np.zeros((*has.shape[1:], ACTIONS), dtype=np.bool_)
    wanted[..., WORKER], wanted[..., SERVER], wanted[..., BOTH] = *lacks, lacks.all(axis=0)
    none = (has[0] == 0) & lacks[0]
    wanted[none] = False
    wanted[none & apart, BOTH] = True
    wanted[none & ~apart, WORKER] = True
    return wanted


def _saved(slots: Slots) -> Floats:
    """Delay that the best few tasks with each action (B, J, 3) save for their share of the cluster."""
    at, j = np.nonzero(np.arange(slots.width) < slots.count[:, None])
    saved: Floats = np.zeros((slots.batch, slots.width, ACTIONS))
    saved[at, j] = ahead(slots, at, j).T
    return saved
