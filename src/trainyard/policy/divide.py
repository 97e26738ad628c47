"""Share out the CPUs and memory of nodes among the jobs that sit there.

Everybody starts at the top of its ladder. Where a node is short, what it lacks is reclaimed from those that
lose least speed for it, in part if a part is enough, and nobody is a victim who has nothing of what is short.
What is left over in the end goes to whoever gains most by it. Nobody goes below its lowest rung, which is as
fast as the proportional share.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from trainyard.model.speed.sensitivity import Ladder
from trainyard.policy.tenants import Tenants

EPSILON = 1e-9  # of a node's CPUs or memory: no shortage
TINY = 1e-6  # CPUs or GB: nothing to hand out
SNAP = 1e-12  # of the way between two rungs


Room = tuple[float, float]  # CPUs and memory, as parts of the node
WHOLE = (1.0, 1.0)


class Seat(NamedTuple):
    """One job on one node: its ladder, and what a proportional share is here as part of the node."""

    ladder: Ladder
    part: float


class Step(NamedTuple):
    """A way down the ladder: to which rung, what it frees of the node, what speed it costs."""

    start: float  # rungs in between that free nothing of what is short are gone for good
    lost: float  # speed lost by that
    to: int
    cpus: float
    memory: float
    speed: float
    between: bool  # whether one may stop on the way


def divide(tenants: Tenants) -> None:
    """Set everybody's place."""
    cpus, memory = tenants.slack()
    short = ((cpus < 0) | (memory < 0)).nonzero()[0].tolist()
    low = any(place < ladder.top for place, ladder in zip(tenants.places, tenants.ladders, strict=True))
    if not short and not low:
        return
    members = tenants.by_node()
    _reclaim(tenants, members, short)
    _hand_out(tenants, members)


def _reclaim(tenants: Tenants, members: dict[int, list[tuple[int, int]]], short: list[int]) -> None:
    """Squeeze nodes; those with the same company are worked out once."""
    number: dict[int, int] = {}
    kind = [number.setdefault(id(ladder), len(number)) for ladder in tenants.ladders]
    known: dict[tuple[object, ...], list[float]] = {}
    for node in short:
        all_gpus = float(tenants.snapshot.nodes.gpus[node])
        company = sorted(
            (kind[i], tenants.parts[i][at][1] / all_gpus, tenants.places[i], i) for i, at in members[node]
        )
        room = tenants.room(node)
        key = (room, *(seat[:3] for seat in company))
        places = known.get(key)
        if places is None:
            places = known[key] = [place for _, _, place, _ in company]
            squeeze([Seat(tenants.ladders[i], part) for _, part, _, i in company], places, room)
        for (_, _, _, i), place in zip(company, places, strict=True):
            tenants.places[i] = place


def worth(seats: list[Seat], room: Room = WHOLE) -> float:
    """Sum of relative speeds if these jobs share a node."""
    places = [float(seat.ladder.top) for seat in seats]
    squeeze(seats, places, room)
    return sum(speed_at(seat.ladder, place) for seat, place in zip(seats, places, strict=True))


def squeeze(seats: list[Seat], places: list[float], room: Room = WHOLE) -> None:
    """Take back what the node lacks, always where it costs least speed."""
    short_cpus, short_memory = _shortage(seats, places, room)
    lack = (False, False)
    steps: list[Step | None] = []
    while short_cpus > EPSILON or short_memory > EPSILON:
        if lack != (lack := (short_cpus > EPSILON, short_memory > EPSILON)):
            steps = [_down(seat, place, lack) for seat, place in zip(seats, places, strict=True)]
        best, cheapest, part = -1, float("inf"), 1.0
        for n, step in enumerate(steps):
            if step is None:
                continue
            some = _part(step, short_cpus, short_memory)
            useful = min(some * step.cpus, short_cpus) if lack[0] else 0.0
            if lack[1]:
                useful += min(some * step.memory, short_memory)
            cost = step.lost + some * step.speed
            if cost < cheapest * useful:
                best, cheapest, part = n, cost / useful, some
        if best < 0:
            return
        step = steps[best]
        assert step is not None
        short_cpus -= part * step.cpus
        short_memory -= part * step.memory
        places[best] = _snap(step.start + part * (step.to - step.start))
        steps[best] = _down(seats[best], places[best], lack)


def _shortage(seats: list[Seat], places: list[float], room: Room) -> tuple[float, float]:
    cpus, memory = -room[0], -room[1]
    for seat, place in zip(seats, places, strict=True):
        share_cpus, share_memory = seat.ladder.at(place)
        cpus += share_cpus * seat.part
        memory += share_memory * seat.part
    return cpus, memory


def _part(step: Step, short_cpus: float, short_memory: float) -> float:
    """How much of a step down is enough; all of it where one cannot stop on the way."""
    if not step.between:
        return 1.0
    need = 0.0
    if short_cpus > 0 and step.cpus > 0:
        need = short_cpus / step.cpus
    if short_memory > 0 and step.memory > 0:
        need = max(need, short_memory / step.memory)
    return min(need, 1.0)


def _down(seat: Seat, place: float, lack: tuple[bool, bool]) -> Step | None:
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
    return Step(
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
    return rung if abs(place - rung) < SNAP else place


def speed_at(ladder: Ladder, place: float) -> float:
    """Relative speed, taken as linear between rungs."""
    k = int(place)
    if place == k:
        return ladder.speed[k]
    return ladder.speed[k] + (place - k) * (ladder.speed[k + 1] - ladder.speed[k])


def _hand_out(tenants: Tenants, members: dict[int, list[tuple[int, int]]]) -> None:
    """Give what is left on each node to those below their top, best gain for the resources first."""
    low = {i for i, place in enumerate(tenants.places) if place < tenants.ladders[i].top}
    if not low:
        return
    cpus, memory = (array.tolist() for array in tenants.slack())
    for node in sorted({node for i in low for node, _ in tenants.parts[i]}):
        if cpus[node] <= TINY and memory[node] <= TINY:
            continue
        hopeful = [
            i for i, _ in members[node] if i in low and _may_rise(tenants, i, cpus[node], memory[node])
        ]
        while hopeful:
            gains = [(_gain(tenants, i), -i) for i in hopeful]
            i = -max(gains)[1]
            if not _climb(tenants, i, cpus, memory):
                hopeful.remove(i)


def _may_rise(tenants: Tenants, i: int, cpus: float, memory: float) -> bool:
    """Whether there is a next rung, and anything at all of what it needs more of."""
    ladder, k = tenants.ladders[i], int(tenants.places[i])
    if k == ladder.top:
        return False
    more_cpus, more_memory = ladder.cpus[k + 1] > ladder.cpus[k], ladder.memory[k + 1] > ladder.memory[k]
    return (cpus > TINY or not more_cpus) and (memory > TINY or not more_memory)


def _gain(tenants: Tenants, i: int) -> float:
    """Speed gained per proportional share of CPUs and memory on the way to the next rung."""
    ladder, k = tenants.ladders[i], int(tenants.places[i])
    cost = ladder.cpus[k + 1] - ladder.cpus[k] + ladder.memory[k + 1] - ladder.memory[k]
    return (ladder.speed[k + 1] - ladder.speed[k]) / max(cost, EPSILON)


def _climb(tenants: Tenants, i: int, cpus: list[float], memory: list[float]) -> bool:
    """Go up towards the next rung as far as all its nodes have room; return whether there may be more."""
    ladder, place = tenants.ladders[i], tenants.places[i]
    k = int(place)
    rise_cpus, rise_memory = ladder.cpus[k + 1] - ladder.cpus[k], ladder.memory[k + 1] - ladder.memory[k]
    far = k + 1 - place
    for at, (node, _) in enumerate(tenants.parts[i]):
        unit_cpus, unit_memory = tenants.unit(i, at)
        for rise, left in ((rise_cpus * unit_cpus, cpus[node]), (rise_memory * unit_memory, memory[node])):
            if rise > 0:
                far = min(far, max(left, 0.0) / rise)
    whole = far >= k + 1 - place
    if not whole and (not ladder.between[k] or far < EPSILON):
        return False
    tenants.places[i] = _snap(place + far)
    for at, (node, _) in enumerate(tenants.parts[i]):
        unit_cpus, unit_memory = tenants.unit(i, at)
        cpus[node] -= far * rise_cpus * unit_cpus
        memory[node] -= far * rise_memory * unit_memory
    return whole and k + 1 < ladder.top
