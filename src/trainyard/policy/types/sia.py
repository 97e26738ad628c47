"""Size stage: Sia (Jayaram Subramanya et al., SOSP'23), an integer program over configurations.

A configuration is a number of GPUs of one type: 1, 2, 4, ... up to a node, then whole nodes, as far as the
job may have them. With G_ic the speed of job i in configuration c, relative to its slowest configuration and
times its fewest GPUs, the program chooses at most one configuration for each job within the GPUs of each
type, with the smallest

    sum_i weight_i x (G_ic' ^ p if it runs, else lambda)

where p = -0.5 and lambda = 1.1 as in the paper: a job of little speed gains more than a fast one. Leaving its
present configuration costs a job part of its speed, less the older it is and the less often it restarted,

    G' = G x (T - N S) / (T + S)        T age, N restarts, S seconds of a restart

What differs: speed is samples per second by the speed model, since statistical efficiency (how much a sample
of a larger batch is worth) is not modelled; speeds are known, so jobs need not start small and double. Jobs
that may not change size have one configuration per type. It decides every 60 s, as Sia, and at once when a
job comes or goes.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.model.tolerance import SECONDS
from trainyard.policy.bounds import within
from trainyard.policy.menus import Menu, menus_of
from trainyard.policy.types.by_type import ByType
from trainyard.policy.types.options import gangs, room_for
from trainyard.policy.types.rounds import period
from trainyard.solve.program import NO_ROWS, Effort, Rows, maximise
from trainyard.state.jobs import Column
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

C = Column
EFFORT = Effort(gap=1e-4, nodes=2000)
LEAST_P, MOST_PENALTY = -20.0, 1e6  # beyond them, all but one job is lost in rounding
LEAST_DISTANCE = 1e-3  # of p from 0, and of the penalty from 1
LEAST_FACTOR = 1e-3  # of a move: a job that restarted too often stays


class Configurations(NamedTuple):
    """All that the program may choose from."""

    job: Ints  # position in the ranking
    use: Ints  # (configurations, types): GPUs
    speed: Floats  # samples/s


class Sia(ByType):
    """Speeds of all jobs traded off by a power, by an integer program."""

    cuts: ClassVar[bool] = True  # Sia lets no part of a node's GPUs span nodes

    def __init__(self, p: float = -0.5, penalty: float = 1.1, round_s: float = 60.0) -> None:
        self.period_s = period(round_s)
        if not p < 0:
            raise InputError(f"p is {p:g}; give a number below 0: the smaller, the fairer")
        if not penalty > 1:
            raise InputError(f"penalty is {penalty:g}; give a number above 1, or jobs rather wait")
        within("p", p, LEAST_P, -LEAST_DISTANCE)
        within("penalty", penalty, 1 + LEAST_DISTANCE, MOST_PENALTY)
        self.p = p
        self.penalty = penalty

    def assign(self, snapshot: Snapshot, ranked: Ints, held: Ints, capacity: Ints) -> Ints:
        """Return the configuration of each ranked row."""
        options = with_present(snapshot, ranked, held, configurations(snapshot, ranked, capacity))
        mix: Ints = np.zeros_like(held)
        if options.job.size:
            cost = self.costs(snapshot, ranked, held, options)
            weight = snapshot.table.column(C.WEIGHT)[ranked][options.job]
            chosen = cheapest(weight * (self.penalty - cost), options, capacity)
            mix[options.job[chosen]] = options.use[chosen]
        return mix

    def costs(self, snapshot: Snapshot, ranked: Ints, held: Ints, options: Configurations) -> Floats:
        """Return G'^p of every configuration."""
        table = snapshot.table
        slowest: Floats = np.full(ranked.size, np.inf)
        np.minimum.at(slowest, options.job, options.speed)
        worth = options.speed / slowest[options.job] * table.column(C.LEAST)[ranked][options.job]
        moves = (held.sum(axis=1) > 0)[options.job] & (options.use != held[options.job]).any(axis=1)
        worth = np.where(moves, worth * move_factors(snapshot, ranked)[options.job], worth)
        cost: Floats = worth**self.p
        return cost


def move_factors(snapshot: Snapshot, ranked: Ints) -> Floats:
    """(T - N S) / (T + S) of every ranked job."""
    table = snapshot.table
    age = snapshot.now_s - table.column(C.ARRIVAL)[ranked]
    cost = np.array([snapshot.restart_cost(table.jobs[row]) for row in ranked.tolist()])
    spent = table.column(C.RESTARTS)[ranked] * cost
    factor: Floats = (age - spent) / np.maximum(age + cost, SECONDS)
    return np.maximum(factor, LEAST_FACTOR)


def cheapest(gain: Floats, options: Configurations, capacity: Ints) -> Ints:
    """Return which configurations to take for the largest gain: one per job at most, within capacity."""
    config, type_ = np.nonzero(options.use)
    jobs, place = np.unique(options.job, return_inverse=True)
    every = np.arange(options.job.size)
    at_most = Rows(
        np.concatenate([place, jobs.size + type_]),
        np.concatenate([every, config]),
        np.concatenate([np.ones(every.size), options.use[config, type_]]),
        np.concatenate([np.ones(jobs.size), capacity]),
    )
    x = maximise(gain, at_most, NO_ROWS, np.ones(every.size), integer=True, effort=EFFORT)
    if x is None:
        return np.zeros(0, dtype=np.int64)
    chosen: Ints = np.flatnonzero(x > 0.5)
    return chosen


def configurations(snapshot: Snapshot, ranked: Ints, capacity: Ints) -> Configurations:
    """Return all configurations of the ranked jobs."""
    menus = menus_of(snapshot, ranked, capacity, powers_and_nodes).each()
    if not menus:
        return Configurations(np.zeros(0, np.int64), np.zeros((0, capacity.size), np.int64), np.zeros(0))
    owner = np.repeat(np.arange(ranked.size), [menu.speed.size for menu in menus])
    use = np.concatenate([menu.by_type for menu in menus])
    return Configurations(owner, use, np.concatenate([menu.speed for menu in menus]))


def with_present(snapshot: Snapshot, ranked: Ints, held: Ints, options: Configurations) -> Configurations:
    """Let running jobs stay as they are, at the speed that they have where they are."""
    rate = snapshot.table.column(C.RATE)[ranked]
    runs = (held.sum(axis=1) > 0) & (rate > 0)
    same = runs[options.job] & (options.use == held[options.job]).all(axis=1)
    other = np.setdiff1d(np.flatnonzero(runs), options.job[same])
    return Configurations(
        np.concatenate([options.job, other]),
        np.concatenate([options.use, held[other]]),
        np.concatenate([np.where(same, rate[options.job], options.speed), rate[other]]),
    )


def powers_and_nodes(snapshot: Snapshot, record: Record, capacity: Ints) -> Menu:
    """Return the menu of one job: powers of two of each type up to a node, then whole nodes."""
    job, nodes = record.job, snapshot.nodes
    room = room_for(job, record.type_index, nodes, capacity)
    use, speed = [], []
    for t in np.flatnonzero(room).tolist():
        curve = snapshot.speed.curve(job, t, max(job.most_gpus, 1))
        for gpus in sizes(job, int(nodes.gpus[nodes.type == t].max()), int(room[t])):
            if curve[gpus] > 0:
                use.append([gpus if column == t else 0 for column in range(capacity.size)])
                speed.append(float(curve[gpus]))
    if not use and _too_large(job, record.type_index, nodes):
        whole = gangs(snapshot, record, capacity)
        return Menu(whole.by_type[whole.speed > 0], whole.speed[whole.speed > 0])
    return Menu(np.array(use, dtype=np.int64).reshape(-1, capacity.size), np.array(speed, dtype=np.float64))


def sizes(job: Job, per_node: int, there: int) -> list[int]:
    """GPUs of one type that a job may have: powers of two up to a node, whole nodes, and its fewest."""
    most = min(job.most_gpus, there)
    powers = {2**k for k in range(per_node.bit_length()) if 2**k <= per_node}
    whole = set(range(per_node, most + 1, per_node))
    return sorted(n for n in powers | whole | {job.least_gpus} if job.least_gpus <= n <= most)


def _too_large(job: Job, own_type: int, nodes: NodeTable) -> bool:
    """Whether no GPU type alone could ever hold the job."""
    return int(room_for(job, own_type, nodes, nodes.gpus_of_type).max()) < job.least_gpus
