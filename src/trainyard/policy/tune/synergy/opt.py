"""Synergy-OPT (Mohan et al., OSDI'22): what TUNE does by rules, done by linear programs.

The first program (`opt_lp`) says what each job should get if the cluster were one big node; the second
(`opt_place_lp`) and its rounding (`opt_round`) say which single-GPU jobs sit where; a third shares out each
node among those that sit there. Larger gangs stay where TUNE has seated them: a program that cuts gangs into
fractions does not see what it costs to spread one. The answer is never worse than TUNE's.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints
from trainyard.model.speed.sensitivity import Ladder
from trainyard.policy.tune.synergy.amounts_program import Menus, best_shares
from trainyard.policy.tune.synergy.occupants import Occupants
from trainyard.policy.tune.synergy.rounding import round_placement
from trainyard.policy.tune.synergy.seats_program import place_shares
from trainyard.policy.tune.synergy.share_out import share_out, speed_at
from trainyard.policy.tune.synergy.stage import SynergyTune
from trainyard.solve.program import Rows, maximise
from trainyard.state.room import Parts

WORTHWHILE = 1e-6  # sum of relative speeds


class _Layout(NamedTuple):
    """Where every job sits, and how high on its ladder."""

    parts: list[Parts]
    places: list[float]


class SynergyOpt(SynergyTune):
    """Synergy-OPT: shares and seats by linear programs."""

    def tune(self, occupants: Occupants) -> None:
        """Start from TUNE's answer; keep what the programs find if it is better and worth its restarts."""
        super().tune(occupants)
        if all(
            place == ladder.top for place, ladder in zip(occupants.places, occupants.ladders, strict=True)
        ):
            return
        best, speed, cost = _layout(occupants), _speed(occupants), _restarts(occupants)[0]
        for reseat in (False, True):
            if reseat and not _take_seats(occupants):
                break
            _share_out(occupants)
            lost, left_s = _restarts(occupants)
            gain = _speed(occupants) - speed
            if gain > WORTHWHILE and gain * left_s >= lost - cost:
                best, speed, cost = _layout(occupants), _speed(occupants), lost
        occupants.parts, occupants.places = best


def _layout(occupants: Occupants) -> _Layout:
    return _Layout(occupants.parts.copy(), occupants.places.copy())


def _speed(occupants: Occupants) -> float:
    """Sum of relative speeds."""
    return sum(speed_at(ladder, p) for ladder, p in zip(occupants.ladders, occupants.places, strict=True))


def _restarts(occupants: Occupants) -> tuple[float, float]:
    """Seconds that running jobs lose because they move, and how long such a job runs on, on average."""
    snap = occupants.snapshot
    moved = [
        i
        for i, job_id in enumerate(occupants.ids)
        if (held := snap.target.get(job_id)) is not None
        and [(snap.nodes.index[share.node], share.gpus) for share in held.shares] != occupants.parts[i]
    ]
    if not moved:
        return 0.0, 0.0
    left = [snap.table.of[occupants.ids[i]].remaining_s(snap.now_s) for i in moved]
    if not all(occupants.jobs[i].preemptible for i in moved):
        return inf, 0.0  # they must not be moved at any price
    return sum(snap.restart_cost(occupants.jobs[i]) for i in moved), float(np.mean(left))


# -- the third program: the CPUs and memory of each node ----------------------------------------------------


def _share_out(occupants: Occupants) -> None:
    """Set places by a linear program over rungs, node by node; whole gangs share a place."""
    sizes = np.array([len(ladder.cpus) for ladder in occupants.ladders])
    owner = np.repeat(np.arange(sizes.size), sizes)
    first = np.concatenate([[0], sizes.cumsum()])
    columns = (np.concatenate([getattr(ladder, name) for ladder in occupants.ladders]) for name in _FIELDS)
    cpus, memory, speed = columns
    nodes = occupants.snapshot.nodes
    row, column, held_cpus, held_memory = [], [], [], []
    for i, parts in enumerate(occupants.parts):
        rungs = np.arange(first[i], first[i + 1])
        for node, gpus in parts:
            row.append(np.full(rungs.size, node))
            column.append(rungs)
            held_cpus.append(cpus[rungs] * gpus * nodes.cpus_per_gpu[node])
            held_memory.append(memory[rungs] * gpus * nodes.memory_per_gpu[node])
    at, rung = np.concatenate(row), np.concatenate(column)
    resources = Rows(
        np.concatenate([at, at + len(nodes.ids)]),
        np.concatenate([rung, rung]),
        np.concatenate([*held_cpus, *held_memory]),
        np.concatenate([occupants.cpus, occupants.memory_gb]),
    )
    every_job = Rows(owner, np.arange(owner.size), np.ones(owner.size), np.ones(sizes.size))
    chosen = maximise(speed, resources, every_job, np.ones(owner.size))
    if chosen is not None:
        for i, ladder in enumerate(occupants.ladders):
            occupants.places[i] = _place(ladder, chosen[first[i] : first[i + 1]])
        share_out(occupants)


_FIELDS = ("cpus", "memory", "speed")


def _place(ladder: Ladder, weights: Floats) -> float:
    """The highest place that needs no more than a mixture of rungs does."""
    if weights.max() > 1 - WORTHWHILE:
        return float(weights.argmax())
    cpus, memory = float(weights @ np.array(ladder.cpus)), float(weights @ np.array(ladder.memory))
    for k in range(ladder.top, 0, -1):
        part = 1.0
        for need, low, high in (
            (cpus, ladder.cpus[k - 1], ladder.cpus[k]),
            (memory, ladder.memory[k - 1], ladder.memory[k]),
        ):
            if high > low:
                part = min(part, (need - low) / (high - low))
            elif need < low:
                part = -1.0
        if part >= 0:
            return k - 1 + part if part == 1.0 or ladder.between[k - 1] else float(k - 1)
    return 0.0


# -- the first two programs: seats --------------------------------------------------------------------------


def _take_seats(occupants: Occupants) -> bool:
    """Seat single-GPU jobs as the first two programs say; return whether they had an answer."""
    nodes = occupants.snapshot.nodes
    room_gpus = np.array(occupants.free_gpus, dtype=np.int64)
    kinds: dict[int, list[int]] = {}
    for i, parts in enumerate(occupants.parts):
        for node, gpus in parts:
            room_gpus[node] += gpus
        of = {-1 if occupants.shared[node] else int(nodes.kind[node]) for node, _ in parts}
        kinds.setdefault(of.pop() if len(of) == 1 else -1, []).append(i)
    # Jobs on unlike nodes, or beside jobs whose CPUs and memory are fixed, stay as they are.
    elsewhere = kinds.pop(-1, [])
    answered = [_seat_kind(occupants, kind, who, elsewhere, room_gpus) for kind, who in kinds.items()]
    return any(answered)


def _seat_kind(
    occupants: Occupants, kind: int, who: list[int], elsewhere: list[int], room_gpus: Ints
) -> bool:
    """Seat the single-GPU jobs on nodes of one kind."""
    nodes = occupants.snapshot.nodes
    here = ((nodes.kind == kind) & (room_gpus > 0) & (occupants.shared == 0)).nonzero()[0]
    each = float(nodes.cpus_per_gpu[here[0]]), float(nodes.memory_per_gpu[here[0]])
    gpus = np.array([sum(count for _, count in occupants.parts[i]) for i in who], dtype=np.int64)
    room = np.stack([room_gpus, nodes.cpus, nodes.memory_gb]).astype(np.float64)
    for i in elsewhere:
        _debit(room, occupants.parts[i], *occupants.ladders[i].at(occupants.places[i]), nodes.share_per_gpu)
    shares = best_shares(_menus(occupants, who, gpus, each), room[1, here].sum(), room[2, here].sum())
    movable = (gpus == 1).nonzero()[0]
    if shares is None or not movable.size:
        return False
    for x in (gpus > 1).nonzero()[0].tolist():
        per_gpu = shares.cpus[x] / each[0], shares.memory_gb[x] / each[1]
        _debit(room, occupants.parts[who[x]], *per_gpu, nodes.share_per_gpu)
    room = np.maximum(room[:, here], 0.0)
    at = {int(node): k for k, node in enumerate(here)}
    stay = [
        at[occupants.parts[who[x]][0][0]] if not occupants.starting[who[x]] else -1 for x in movable.tolist()
    ]
    size, cells = gpus[movable], room[0].astype(np.int64)
    where = place_shares(
        size, shares.cpus[movable], shares.memory_gb[movable], cells, room[1], room[2], np.array(stay)
    )
    if where is None:
        return False
    placed = round_placement(where, size, cells)
    for x, node in zip(movable[placed.job].tolist(), here[placed.node].tolist(), strict=True):
        occupants.move(who[x], node)
    return True


def _debit(
    room: Floats, parts: Parts, cpus: float, memory: float, per_gpu: list[tuple[float, float]]
) -> None:
    """Take what a job holds, in proportional shares, out of the room of its nodes."""
    for node, gpus in parts:
        room[:, node] -= gpus, gpus * cpus * per_gpu[node][0], gpus * memory * per_gpu[node][1]


def _menus(occupants: Occupants, who: list[int], gpus: Ints, each: tuple[float, float]) -> Menus:
    """The rungs of these jobs as options, in CPUs and GB per GPU."""
    longest = max(len(occupants.ladders[i].cpus) for i in who)
    options = np.full((3, len(who), longest), -np.inf)
    options[:2] = 0.0
    for x, i in enumerate(who):
        ladder = occupants.ladders[i]
        options[:, x, : len(ladder.cpus)] = ladder.cpus, ladder.memory, ladder.speed
    floor = np.array([occupants.ladders[i].speed[0] for i in who])
    return Menus(gpus, options[0] * each[0], options[1] * each[1], options[2], floor)
