"""Share out the CPUs and memory of nodes among the jobs that sit there.

Every job starts at the top of its ladder. Where a node is short, what it lacks is reclaimed from those that
lose least speed for it, in part if a part is enough, and never from a job that has nothing of what is short.
What is left over goes to the jobs that gain most by it. No job goes below its lowest rung, which is as
fast as the proportional share.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trainyard.model.speed.sensitivity import Ladder
from trainyard.model.tolerance import CPUS_GB, FINE_PART, PART
from trainyard.policy.size.growth import best_first
from trainyard.policy.tune.synergy.occupants import Occupants

Spare = tuple[float, float]  # CPUs and memory, as parts of the node
WHOLE = (1.0, 1.0)


class Seat(NamedTuple):
    """One job on one node: its ladder, and what a proportional share is here as part of the node."""

    ladder: Ladder
    part: float


class Descent(NamedTuple):
    """A way down the ladder: to which rung, what it frees of the node, what speed it costs."""

    start: float  # rungs in between that free nothing of what is short are gone for good
    lost: float  # speed lost by that
    to: int
    cpus: float
    memory: float
    speed: float
    between: bool  # whether one may stop on the way


def share_out(occupants: Occupants) -> None:
    """Set every job's place on its ladder."""
    cpus, memory = occupants.slack()
    short = ((cpus < 0) | (memory < 0)).nonzero()[0].tolist()
    if not short and not _low(occupants):
        return
    members = occupants.by_node()
    _reclaim(occupants, members, short)
    _hand_out(occupants, members)


def _reclaim(occupants: Occupants, members: dict[int, list[tuple[int, int]]], short: list[int]) -> None:
    """Squeeze nodes; those with the same company are worked out once."""
    kind, known = occupants.rungs.kind, dict[tuple[object, ...], list[float]]()
    for node in short:
        all_gpus = float(occupants.snapshot.nodes.gpus[node])
        company = sorted([(kind[i], gpus / all_gpus, occupants.places[i], i) for i, gpus in members[node]])
        *looks, who = zip(*company, strict=True)
        room = occupants.room(node)
        places = known.get((room, *looks))
        if places is None:
            places = known[room, *looks] = list(looks[2])
            squeeze([Seat(occupants.ladders[i], part) for _, part, _, i in company], places, room)
        for i, place in zip(who, places, strict=True):
            occupants.places[i] = place


def worth(seats: list[Seat], room: Spare = WHOLE) -> float:
    """Sum of relative speeds if these jobs share a node."""
    places = [float(seat.ladder.top) for seat in seats]
    squeeze(seats, places, room)
    return sum(speed_at(seat.ladder, place) for seat, place in zip(seats, places, strict=True))


def squeeze(seats: list[Seat], places: list[float], room: Spare = WHOLE) -> None:
    """Take back what the node lacks, always where it costs least speed."""
    short_cpus, short_memory = _shortage(seats, places, room)
    lack = (False, False)
    steps: list[Descent | None] = []
    while short_cpus > PART or short_memory > PART:
        if lack != (lack := (short_cpus > PART, short_memory > PART)):
            steps = [_down(seat, place, lack) for seat, place in zip(seats, places, strict=True)]
        best, part = _cheapest(steps, short_cpus, short_memory)
        if best < 0:
            return
        step = steps[best]
        assert step is not None
        short_cpus -= part * step.cpus
        short_memory -= part * step.memory
        places[best] = _snap(step.start + part * (step.to - step.start))
        steps[best] = _down(seats[best], places[best], lack)


def _cheapest(steps: list[Descent | None], short_cpus: float, short_memory: float) -> tuple[int, float]:
    """The step that costs least speed for what it frees of what is short (-1: none), and how much of it."""
    best, cheapest, part = -1, math.inf, 1.0
    for n, step in enumerate(steps):
        if step is None:
            continue
        _, lost, _, cpus, memory, speed, between = step
        some = 1.0
        if between:  # one may stop where it is enough
            need = short_cpus / cpus if short_cpus > 0 and cpus > 0 else 0.0
            if short_memory > 0 and memory > 0:
                need = max(need, short_memory / memory)
            some = min(need, 1.0)
        useful = min(some * cpus, short_cpus) if short_cpus > PART else 0.0
        if short_memory > PART:
            useful += min(some * memory, short_memory)
        cost = lost + some * speed
        if cost < cheapest * useful:
            best, cheapest, part = n, cost / useful, some
    return best, part


def _shortage(seats: list[Seat], places: list[float], room: Spare) -> tuple[float, float]:
    cpus, memory = -room[0], -room[1]
    for seat, place in zip(seats, places, strict=True):
        share_cpus, share_memory = seat.ladder.at(place)
        cpus += share_cpus * seat.part
        memory += share_memory * seat.part
    return cpus, memory


@lru_cache(maxsize=4096)  # the same few ways, node after node
def _down(seat: Seat, place: float, lack: tuple[bool, bool]) -> Descent | None:
    """The way down to the next rung where there is less of what the node lacks; None if there is no such."""
    ladder = seat.ladder
    cpus, memory = ladder.at(place)
    to = math.ceil(place) - 1
    while to >= 0 and not ((lack[0] and ladder.cpus[to] < cpus) or (lack[1] and ladder.memory[to] < memory)):
        to -= 1
    if to < 0:
        return None
    start = min(place, to + 1.0)
    cpus, memory = ladder.at(start)
    speed = speed_at(ladder, start)
    return Descent(
        start,
        speed_at(ladder, place) - speed,
        to,
        (cpus - ladder.cpus[to]) * seat.part,
        (memory - ladder.memory[to]) * seat.part,
        speed - ladder.speed[to],
        ladder.between[to],
    )


def _snap(place: float) -> float:
    """A place that differs from a rung by rounding only is the rung."""
    rung = float(round(place))
    return rung if abs(place - rung) < FINE_PART else place


def speed_at(ladder: Ladder, place: float) -> float:
    """Relative speed, taken as linear between rungs."""
    k = int(place)
    if place == k:
        return ladder.speed[k]
    return ladder.speed[k] + (place - k) * (ladder.speed[k + 1] - ladder.speed[k])


def _low(occupants: Occupants) -> set[int]:
    """Those below their top."""
    return set((np.array(occupants.places) < occupants.rungs.tops).nonzero()[0].tolist())


def _hand_out(occupants: Occupants, members: dict[int, list[tuple[int, int]]]) -> None:
    """Give what is left on each node to those below their top, best gain for the resources first."""
    low = _low(occupants)
    if not low:
        return
    cpus, memory = (array.tolist() for array in occupants.slack())
    for node in sorted({node for i in low for node, _ in occupants.parts[i]}):
        if cpus[node] <= CPUS_GB and memory[node] <= CPUS_GB:
            continue
        hopeful = [
            (i, _rise(occupants, i))
            for i, _ in members[node]
            if i in low and _may_rise(occupants, i, cpus[node], memory[node])
        ]
        best_first(hopeful, lambda i, _: _rise(occupants, i) if _climb(occupants, i, cpus, memory) else None)


def _may_rise(occupants: Occupants, i: int, cpus: float, memory: float) -> bool:
    """Whether there is a next rung, and anything at all of what it needs more of."""
    ladder, k = occupants.ladders[i], int(occupants.places[i])
    if k == ladder.top:
        return False
    more_cpus, more_memory = ladder.cpus[k + 1] > ladder.cpus[k], ladder.memory[k + 1] > ladder.memory[k]
    return (cpus > CPUS_GB or not more_cpus) and (memory > CPUS_GB or not more_memory)


def _rise(occupants: Occupants, i: int) -> tuple[float]:
    """The way to the next rung: the more speed it gains per proportional share, the lower its rank."""
    ladder, k = occupants.ladders[i], int(occupants.places[i])
    cost = ladder.cpus[k + 1] - ladder.cpus[k] + ladder.memory[k + 1] - ladder.memory[k]
    return ((ladder.speed[k] - ladder.speed[k + 1]) / max(cost, PART),)


def _climb(occupants: Occupants, i: int, cpus: list[float], memory: list[float]) -> bool:
    """Go up towards the next rung as far as all its nodes have room; return whether there may be more."""
    ladder, place = occupants.ladders[i], occupants.places[i]
    k = int(place)
    rise_cpus, rise_memory = ladder.cpus[k + 1] - ladder.cpus[k], ladder.memory[k + 1] - ladder.memory[k]
    rest, per_gpu = k + 1 - place, occupants.snapshot.nodes.share_per_gpu
    far = rest
    units = [(node, gpus * per_gpu[node][0], gpus * per_gpu[node][1]) for node, gpus in occupants.parts[i]]
    for node, unit_cpus, unit_memory in units:
        for rise, left in ((rise_cpus * unit_cpus, cpus[node]), (rise_memory * unit_memory, memory[node])):
            if rise > 0:
                far = min(far, max(left, 0.0) / rise)
    whole = far > rest - PART
    if whole:
        far = rest  # a node that lacks no more than rounding has room
    elif not ladder.between[k] or far < PART:
        return False
    occupants.places[i] = _snap(place + far)
    for node, unit_cpus, unit_memory in units:
        cpus[node] -= far * rise_cpus * unit_cpus
        memory[node] -= far * rise_memory * unit_memory
    return whole and k + 1 < ladder.top
