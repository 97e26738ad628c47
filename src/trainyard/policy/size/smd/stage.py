"""Size stage: SMD (Yu, Wu, Ji, Liu, INFOCOM'21): the paper's problem of one interval, at every decision.

For each job the workers and servers with which it would end first, within what it may have at most (its
reservation: `max_gpus`, and the CPUs and memory that go with so many GPUs); then a knapsack over what the
jobs are worth when they end. Jobs that are worth nothing any more come last, in the order of the order stage;
but one that has waited for several times as long as it had until its deadline comes first.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.model.cluster import Node, NodeTable
from trainyard.model.speed import Ratios
from trainyard.model.tolerance import COUNT, PART, SECONDS
from trainyard.policy.bounds import within
from trainyard.policy.size.hysteresis import settle
from trainyard.policy.size.smd.offline import smd_numbers
from trainyard.policy.size.smd.problem import (
    Demands,
    Problem,
    most_workers,
)
from trainyard.policy.size.smd.rounding import Rounding
from trainyard.policy.size.smd.utility import Deadline, Inverse, Linear, Sigmoid, Utility
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.solve.knapsack import exact, fill, frieze_clarke, lp_rounded
from trainyard.state.beliefs import MOST_SERVERS, Told
from trainyard.state.capacity import up_capacity
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column
Solver = Literal["lp", "milp", "frieze-clarke"]
UtilityName = Literal["sigmoid", "inverse", "linear", "step"]
Charge = Literal["reserved", "used"]
STEEPNESS = 10.0  # of the sigmoid, over the time until the deadline
OVERDUE = 4.0  # times the time until its deadline: who has waited longer is admitted first
MOST_PATIENCE = 1e6
MOST_K = 3  # there is a linear program for every set of k jobs
LEAST_EPS = 1e-3  # the grid has some 1 / eps points along each axis


class Smd(Size):
    """Shapes from SMD's inner problem, admission by its knapsack."""

    refusal: ClassVar[str] = "is not admitted: jobs that are worth more have reserved what it would need"

    def __init__(
        self,
        eps: float = 0.1,
        solver: Solver = "lp",
        k: int | None = None,
        utility: UtilityName = "sigmoid",
        patience: float = 4.0,
        charge: Charge = "reserved",
    ) -> None:
        if k is not None and solver != "frieze-clarke":
            raise InputError(f"k={k} has no meaning without solver=frieze-clarke; leave it out or add that")
        within("eps", eps, LEAST_EPS, 1)
        within("patience", patience, 1 / MOST_PATIENCE, MOST_PATIENCE)
        within("k", k or 1, 1, MOST_K)
        self.eps, self.solver, self.k = eps, solver, k or 1
        self.utility, self.patience, self.charge = utility, patience, charge

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return GPUs and servers for each ranked row; 0 where a job is not admitted."""
        beliefs = Told(snapshot)
        gpus, servers, *_ = settle(beliefs, ranked, Shapes(*self._numbers(beliefs, ranked)))
        assert servers is not None
        worth = self._worth(beliefs, ranked, gpus, servers)
        weights, capacity = self._weights(beliefs, ranked, gpus, servers)
        admitted = self._overdue(beliefs, ranked, weights, capacity)
        rest = np.flatnonzero(~admitted)
        left = np.maximum(capacity - weights[admitted].sum(axis=0), 0.0)
        admitted[rest] = self._outer(worth[rest], weights[rest], left)
        fill(admitted, np.arange(ranked.size), weights, capacity)
        return Chosen(Shapes(np.where(admitted, gpus, 0), np.where(admitted, servers, 0)))

    def _numbers(self, beliefs: Told, ranked: Ints) -> tuple[Ints, Ints]:
        """Workers and servers of each ranked job: one inner problem for all jobs that are alike."""
        snapshot = beliefs.snapshot
        kinds: dict[tuple[object, ...], int] = {}
        of = np.empty(ranked.size, dtype=np.int64)
        rows: list[int] = []  # one of each kind
        for j, row in enumerate(ranked.tolist()):
            job = snapshot.table.jobs[row]
            most = job.most_gpus, beliefs.most(row)  # asked for, and there are of its type
            # Coarser than `job.kind`: neither the GPUs it asks for nor how it came by its type count.
            key = (job.content, job.least_gpus, most, beliefs.gpu_type(row), job.asked_per_gpu)
            kind = kinds.setdefault(key, len(rows))
            if kind == len(rows):
                rows.append(row)
            of[j] = kind
        numbers = np.zeros((len(rows), 2), dtype=np.int64)
        links = _links(snapshot.nodes)
        theta = [i for i, row in enumerate(rows) if _ratios(beliefs, row, links, False) is not None]
        for i in sorted(set(range(len(rows))) - set(theta)):
            numbers[i] = _tried(beliefs, rows[i])
        if theta:
            numbers[theta] = self._solved(beliefs, [rows[i] for i in theta], links)
        return numbers[of, 0], numbers[of, 1]

    def _solved(self, beliefs: Told, rows: list[int], links: _Links) -> Ints:
        """The better answer of two inner problems: on one node with its bandwidth, and over the network."""
        best, speeds = np.ones((len(rows), 2), dtype=np.int64), np.zeros(len(rows))
        demands = _demands(beliefs, rows)
        for together in (False, True):
            rounding = Rounding(np.random.default_rng(beliefs.snapshot.rules.seed))
            found = smd_numbers(_problem(beliefs, rows, demands, links, together), rounding, self.eps)
            for i, (row, w, p, fits) in enumerate(zip(rows, *found, strict=True)):
                speed = beliefs.speed(row, int(w), int(p)) if fits else 0.0
                if speed > speeds[i]:
                    best[i], speeds[i] = (w, p), speed
        return best

    def _worth(self, beliefs: Told, ranked: Ints, gpus: Ints, servers: Ints) -> Floats:
        """What each job is worth when it ends, if it gets what it should from now on."""
        snapshot, table = beliefs.snapshot, beliefs.snapshot.table
        speeds = np.array(
            [beliefs.speed(row, g, p) for row, g, p in zip(ranked.tolist(), gpus, servers, strict=True)]
        )
        with np.errstate(divide="ignore"):
            left_s = beliefs.left[ranked] / speeds
        arrival = table.column(C.ARRIVAL)[ranked]
        worth = _utility(self.utility, self._limit_s(beliefs, ranked))(snapshot.now_s - arrival + left_s)
        return np.where(np.isfinite(left_s), worth * table.column(C.WEIGHT)[ranked], 0.0)

    def _weights(self, beliefs: Told, ranked: Ints, gpus: Ints, servers: Ints) -> tuple[Floats, Floats]:
        """GPUs, CPUs and GB that each job counts with, and those of the cluster."""
        demands = _demands(beliefs, ranked.tolist())
        capacity = np.array(up_capacity(beliefs.snapshot))
        used = demands.worker[:, :3] * gpus[:, None] + demands.server[:, :3] * servers[:, None]
        weights = used if self.charge == "used" else np.maximum(demands.limit[:, :3], used)
        # A job that may have more than there is can still have what it uses.
        beyond = np.any(weights > capacity, axis=1, keepdims=True)
        return np.where(beyond, used, weights), capacity

    def _overdue(self, beliefs: Told, ranked: Ints, weights: Floats, capacity: Floats) -> Mask:
        """Which jobs come before all others, whatever they are worth: they have waited for too long."""
        snapshot, taken = beliefs.snapshot, np.zeros(ranked.size, dtype=np.bool_)
        arrival = snapshot.table.column(C.ARRIVAL)[ranked]
        waited_s = snapshot.now_s - arrival - snapshot.executed_s()[ranked]
        late = np.flatnonzero(waited_s > OVERDUE * self._limit_s(beliefs, ranked))
        fill(taken, late[np.argsort(arrival[late], kind="stable")], weights, capacity)
        return taken

    def _limit_s(self, beliefs: Told, ranked: Ints) -> Floats:
        """Seconds from its arrival until a job should be done."""
        table = beliefs.snapshot.table
        arrival = table.column(C.ARRIVAL)[ranked]
        ideal_s = table.column(C.TOTAL)[ranked] / table.column(C.REFERENCE_RATE)[ranked]
        due = np.array([table.jobs[row].deadline_s or np.nan for row in ranked.tolist()], dtype=np.float64)
        return np.where(np.isnan(due), self.patience * ideal_s, np.maximum(due - arrival, SECONDS))

    def _outer(self, worth: Floats, weights: Floats, capacity: Floats) -> Mask:
        if self.solver == "lp":
            return lp_rounded(worth, weights, capacity)
        if self.solver == "milp":
            return exact(worth, weights, capacity)
        return frieze_clarke(worth, weights, capacity, self.k)


def _utility(name: UtilityName, limit_s: Floats) -> Utility:
    if name == "sigmoid":
        return Sigmoid(1.0, STEEPNESS / limit_s, limit_s)
    if name == "linear":
        return Linear(limit_s)
    return Deadline(limit_s) if name == "step" else Inverse()


class _Links(NamedTuple):
    """What jobs may count on, by GPU type."""

    largest: dict[int, Node]
    network_gbps: dict[int, float]  # of the slowest node


def _links(nodes: NodeTable) -> _Links:
    links = _Links({}, {})
    for node, type_ in zip(nodes.cluster.nodes, nodes.type.tolist(), strict=True):
        links.network_gbps[type_] = min(links.network_gbps.get(type_, np.inf), node.network_gbps)
        if type_ not in links.largest or node.gpus > links.largest[type_].gpus:
            links.largest[type_] = node
    return links


def _ratios(beliefs: Told, row: int, links: _Links, together: bool) -> Ratios | None:
    """The factors of SMD's equations; None if a job's speed has another form, or one worker is too few."""
    job, type_ = beliefs.snapshot.table.jobs[row], beliefs.gpu_type(row)
    if job.least_gpus > 1:
        return None
    gbps = links.largest[type_].intra_gbps if together else links.network_gbps[type_]
    return beliefs.snapshot.speed.ratios(job, type_, gbps)


def _problem(beliefs: Told, rows: list[int], demands: Demands, links: _Links, together: bool) -> Problem:
    """The inner problem of jobs with servers, per sample: how much is left does not change the answer."""
    if together:
        places = [links.largest[beliefs.gpu_type(row)] for row in rows]
        whole = np.array([(n.gpus, n.cpus, n.memory_gb, np.inf, np.inf) for n in places])
        demands = Demands(demands.worker, demands.server, np.minimum(demands.limit, whole))
    found = [_ratios(beliefs, row, links, together) for row in rows]
    factors = np.array([ratios for ratios in found if ratios is not None], dtype=np.float64)
    constant, a, b, c, d, e, f = factors.T
    return Problem(constant, a, b, c, d, e, f, demands)


def _demands(beliefs: Told, rows: list[int]) -> Demands:
    """GPUs, CPUs and GB of a worker, of a server and at most; then the numbers of both at most."""
    capacity = np.array(up_capacity(beliefs.snapshot))
    share = capacity / capacity[0]  # what goes with one GPU
    asked = np.empty((len(rows), 7))
    for i, row in enumerate(rows):
        job = beliefs.snapshot.table.jobs[row]
        server = job.profile.server if job.profile is not None and job.profile.apart else None
        held = (server.cpus, server.memory_gb) if server is not None else (0.0, 0.0)
        asked[i] = *job.asked_per_gpu, *held, job.least_gpus, beliefs.most(row), job.most_gpus
    own, held_by_server, (least, most, servers) = asked[:, :2], asked[:, 2:4], asked[:, 4:].T
    none, one = np.zeros((len(rows), 1)), np.ones((len(rows), 1))
    worker = np.hstack([one, np.where(np.isnan(own), share[1:], own), one, none])
    server_rows = np.hstack([none, held_by_server, none, one])
    smallest = worker[:, :3] * least[:, None] + server_rows[:, :3]
    # A job without servers of its own may have what it asks for with all its GPUs.
    wanted = np.where(held_by_server.any(axis=1, keepdims=True), 0.0, worker[:, :3] * most[:, None])
    limit = np.maximum(np.minimum(np.maximum(most[:, None] * share, wanted), capacity), smallest)
    numbers = np.column_stack([most, np.minimum(servers, MOST_SERVERS)])
    return Demands(worker, server_rows, np.hstack([limit, numbers]))


def _tried(beliefs: Told, row: int) -> tuple[int, int]:
    """The best numbers of a job whose speed has any form, by trying all."""
    job = beliefs.snapshot.table.jobs[row]
    if not beliefs.apart(row):
        demands = _demands(beliefs, [row])
        most = max(job.least_gpus, int(most_workers(demands, np.zeros(1))[0] + COUNT))
        return job.least_gpus + int(beliefs.curve(row)[job.least_gpus : most + 1].argmax()), 0
    speeds = beliefs.surface(row)
    demands = _demands(beliefs, [row])
    workers, servers = np.indices(speeds.shape).reshape(2, -1, 1)
    need = demands.worker * workers + demands.server * servers
    fits = np.all(need <= demands.limit * (1 + PART), axis=1)
    fits &= (workers[:, 0] >= job.least_gpus) & (servers[:, 0] >= 1)
    best = int(np.where(fits, speeds.reshape(-1), -1.0).argmax())
    return int(workers[best, 0]), int(servers[best, 0])
