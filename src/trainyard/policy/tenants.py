"""Jobs on nodes with their ladders: among whom the CPUs and memory of each node are shared out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.speed.sensitivity import Ladder
from trainyard.policy.snapshot import Snapshot
from trainyard.policy.stages import Changes

SAME = 1e-9  # shares nearer than this (relative) are the same: no need to touch the job
Parts = list[tuple[int, int]]  # (node, GPUs)


class Tenants:
    """Everybody that should run, where, and how high on its ladder. Places start at the top.

    Jobs that ask for CPUs or memory of their own choice are no tenants: they hold what they asked for, and
    the tenants share the room that is left.
    """

    def __init__(self, snapshot: Snapshot, planned: Mapping[str, Allocation]) -> None:
        self.snapshot = snapshot
        table, nodes, ladder = snapshot.table, snapshot.nodes, snapshot.sensitivity.ladder
        particular: dict[str, Allocation] = {}
        if table.particular:
            particular = {j: a for j, a in planned.items() if table.jobs[table.row_of[j]].particular}
        self.ids = [job_id for job_id in planned if job_id not in particular]
        self.planned = [planned[job_id] for job_id in self.ids]
        self.jobs: list[Job] = [table.jobs[table.row_of[job_id]] for job_id in self.ids]
        self.free_gpus = self._free_gpus(planned)
        self.starting = [job_id not in snapshot.running for job_id in self.ids]
        self.parts: list[Parts] = [
            [(nodes.index[share[0]], share[1]) for share in allocation.shares] for allocation in self.planned
        ]
        self.ladders: list[Ladder] = [
            ladder(job, allocation.workers) for job, allocation in zip(self.jobs, self.planned, strict=True)
        ]
        self.places: list[float] = [float(ladder.top) for ladder in self.ladders]
        self.cpus, self.memory_gb = nodes.cpus.copy(), nodes.memory_gb.copy()
        self.shared: Ints = np.zeros(len(nodes.ids), dtype=np.int64)  # nodes with others than tenants on them
        for allocation in particular.values():
            for share in allocation.shares:
                node = nodes.index[share.node]
                self.cpus[node] -= share.cpus
                self.memory_gb[node] -= share.memory_gb
                self.shared[node] += 1

    def room(self, node: int) -> tuple[float, float]:
        """The part of a node's CPUs and memory that is there for tenants."""
        nodes = self.snapshot.nodes
        if not self.shared[node]:
            return 1.0, 1.0
        return float(self.cpus[node] / nodes.cpus[node]), float(self.memory_gb[node] / nodes.memory_gb[node])

    def _free_gpus(self, planned: Mapping[str, Allocation]) -> list[int]:
        """GPUs of each node that nobody is planned on."""
        index, running = self.snapshot.nodes.index, self.snapshot.running
        free = self.snapshot.free.gpus.copy()
        for allocations, other, sign in ((running, planned, 1), (planned, running, -1)):
            for job_id, allocation in allocations.items():
                if other.get(job_id) is not allocation:
                    for share in allocation.shares:
                        free[index[share.node]] += sign * share.gpus
        return free

    def unit(self, i: int, at: int) -> tuple[float, float]:
        """CPUs and GB on a node that one proportional share of tenant i's part number `at` stands for."""
        node, gpus = self.parts[i][at]
        cpus, memory = self.snapshot.nodes.share_per_gpu[node]
        return gpus * cpus, gpus * memory

    def move(self, i: int, node: int) -> None:
        """Put a tenant that sits on one node on another one like it."""
        before, gpus = self.parts[i][0]
        self.parts[i] = [(node, gpus)]
        self.free_gpus[before] += gpus
        self.free_gpus[node] -= gpus

    def by_node(self) -> dict[int, list[tuple[int, int]]]:
        """Node -> (tenant, number of its part there)."""
        members: dict[int, list[tuple[int, int]]] = {}
        for i, parts in enumerate(self.parts):
            for at, (node, gpus) in enumerate(parts):
                if gpus:
                    members.setdefault(node, []).append((i, at))
        return members

    def slack(self) -> tuple[Floats, Floats]:
        """CPUs and GB that each node has left, below zero if short, with everybody on its place."""
        nodes = self.snapshot.nodes
        held = [
            (node, gpus, *share)
            for parts, share in zip(self.parts, self.shares(), strict=True)
            for node, gpus in parts
        ]
        node, gpus, cpus, memory = np.array(held, dtype=np.float64).reshape(-1, 4).T
        at, count = node.astype(np.int64), len(nodes.ids)
        held_cpus = np.bincount(at, gpus * cpus, count) * nodes.cpus_per_gpu
        held_memory = np.bincount(at, gpus * memory, count) * nodes.memory_per_gpu
        return self.cpus - held_cpus, self.memory_gb - held_memory

    def shares(self) -> list[tuple[float, float]]:
        """What everybody's place stands for, in proportional shares of CPUs and memory."""
        return [ladder.at(place) for ladder, place in zip(self.ladders, self.places, strict=True)]

    def changes(self, changes: Changes) -> dict[str, Allocation | None]:
        """What has to change for everybody to get what its place stands for."""
        tenants, running = set(self.ids), self.snapshot.running
        result = {j: a for j, a in changes.items() if j not in tenants}
        for i, job_id in enumerate(self.ids):
            before = running.get(job_id)
            if before is None or not self._holds(i, before):
                result[job_id] = self._allocation(i)
        return result

    def _holds(self, i: int, before: Allocation) -> bool:
        """Whether a tenant has all it should, but for rounding."""
        parts, shares = self.parts[i], before.shares
        if len(parts) != len(shares):
            return False
        index, per_gpu = self.snapshot.nodes.index, self.snapshot.nodes.share_per_gpu
        cpus, memory = self.ladders[i].at(self.places[i])
        for (node, gpus), (name, count, _, held_cpus, held_memory) in zip(parts, shares, strict=True):
            if index[name] != node or count != gpus:
                return False
            unit_cpus, unit_memory = per_gpu[node]
            want_cpus, want_memory = gpus * unit_cpus * cpus, gpus * unit_memory * memory
            if held_cpus == want_cpus and held_memory == want_memory:
                continue
            if (
                abs(held_cpus - want_cpus) > SAME * want_cpus
                or abs(held_memory - want_memory) > SAME * want_memory
            ):
                return False
        return True

    def _allocation(self, i: int) -> Allocation:
        nodes, (cpus, memory) = self.snapshot.nodes, self.ladders[i].at(self.places[i])
        shares = []
        for (node, gpus), planned in zip(self.parts[i], self.planned[i].shares, strict=True):
            unit_cpus, unit_memory = nodes.share_per_gpu[node]
            held = (gpus * unit_cpus * cpus, gpus * unit_memory * memory)
            shares.append(Share(nodes.ids[node], gpus, planned[2], *held))
        return Allocation(tuple(shares))
