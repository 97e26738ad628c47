"""Jobs on nodes with their ladders: among whom the CPUs and memory of each node are shared out."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from trainyard.model.allocation import Allocation, Share
from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.speed.sensitivity import Ladder, Rungs
from trainyard.model.tolerance import PART
from trainyard.policy.stages import Changes
from trainyard.state.room import Parts
from trainyard.state.snapshot import Snapshot

new_share = partial(tuple.__new__, Share)  # like Share._make, three times as quick


class Occupants:
    """The jobs that should run, where, and how high on their ladders. Places start at the top.

    Jobs that ask for CPUs or memory of their own choice are no occupants: they hold what they asked for, and
    the occupants share the room that is left.
    """

    def __init__(self, snapshot: Snapshot, planned: Changes) -> None:
        self.snapshot = snapshot
        self._planned = planned
        table, nodes = snapshot.table, snapshot.nodes
        allocations = {j: a for j, a in snapshot.target.items() if j not in planned}
        allocations |= {j: a for j, a in planned.items() if a is not None}
        particular: dict[str, Allocation] = {}
        if table.particular:
            particular = {j: a for j, a in allocations.items() if table.of[j].job.particular}
            allocations = {j: a for j, a in allocations.items() if j not in particular}
        self.ids = list(allocations)
        self.jobs: list[Job] = [table.of[job_id].job for job_id in self.ids]
        self.starting = [job_id not in snapshot.target for job_id in self.ids]
        # The parts of all occupants in a row, those of tenant i from ends[i] to ends[i + 1].
        self.ends = list(accumulate([len(a.shares) for a in allocations.values()], initial=0))
        self._shares = [share for a in allocations.values() for share in a.shares]
        pairs = [(nodes.index[share[0]], share[1]) for share in self._shares]
        self.parts: list[Parts] = [pairs[start:end] for start, end in pairwise(self.ends)]
        self.owner: Ints = np.repeat(np.arange(len(self.ids)), np.diff(self.ends))
        self.gpus: Ints = np.array([gpus for _, gpus in pairs], dtype=np.int64)
        self.free_gpus = self._free_gpus()
        self.ladders: list[Ladder] = snapshot.sensitivity.ladders(self.jobs, self.parts)
        self.rungs = Rungs(self.ladders)
        self.places: list[float] = self.rungs.tops.astype(np.float64).tolist()
        self.cpus, self.memory_gb = nodes.cpus.copy(), nodes.memory_gb.copy()
        self.shared: Ints = np.zeros(len(nodes.ids), dtype=np.int64)  # nodes with other jobs on them too
        for allocation in particular.values():
            for share in allocation.shares:
                node = nodes.index[share.node]
                self.cpus[node] -= share.cpus
                self.memory_gb[node] -= share.memory_gb
                self.shared[node] += 1

    def room(self, node: int) -> tuple[float, float]:
        """The part of a node's CPUs and memory that is there for occupants."""
        nodes = self.snapshot.nodes
        if not self.shared[node]:
            return 1.0, 1.0
        return float(self.cpus[node] / nodes.cpus[node]), float(self.memory_gb[node] / nodes.memory_gb[node])

    def _free_gpus(self) -> list[int]:
        """GPUs of each node that no plan uses."""
        index, running = self.snapshot.nodes.index, self.snapshot.target
        free = self.snapshot.free.gpus.copy()
        for job_id in self._planned.keys() & running.keys():
            for share in running[job_id].shares:
                free[index[share[0]]] += share[1]
        for allocation in self._planned.values():
            for share in allocation.shares if allocation is not None else ():
                free[index[share[0]]] -= share[1]
        return free

    def move(self, i: int, node: int) -> None:
        """Put a tenant that sits on one node on another one like it."""
        before, gpus = self.parts[i][0]
        self.parts[i] = [(node, gpus)]
        self.free_gpus[before] += gpus
        self.free_gpus[node] -= gpus

    def where(self) -> Ints:
        """The node of every part, in a row."""
        return np.array([node for parts in self.parts for node, _ in parts], dtype=np.int64)

    def by_node(self) -> dict[int, list[tuple[int, int]]]:
        """Node -> (tenant, its GPUs there)."""
        node, some = self.where(), self.gpus.nonzero()[0]
        order = some[node[some].argsort(kind="stable")]
        members = list(zip(self.owner[order].tolist(), self.gpus[order].tolist(), strict=True))
        names, first = np.unique(node[order], return_index=True)
        ends = [*first.tolist(), len(members)]
        return {name: members[a:b] for name, (a, b) in zip(names.tolist(), pairwise(ends), strict=True)}

    def held(self) -> Floats:
        """CPUs and memory of every part in a row, in proportional shares of a GPU."""
        held: Floats = self.gpus * self.rungs.at(self.places)[:, self.owner]
        return held

    def slack(self) -> tuple[Floats, Floats]:
        """CPUs and GB that each node has left, below zero if short, with every job on its place."""
        nodes, node = self.snapshot.nodes, self.where()
        cpus, memory = self.held()
        held_cpus = np.bincount(node, cpus, len(nodes.ids)) * nodes.cpus_per_gpu
        held_memory = np.bincount(node, memory, len(nodes.ids)) * nodes.memory_per_gpu
        return self.cpus - held_cpus, self.memory_gb - held_memory

    def changes(self) -> dict[str, Allocation | None]:
        """What has to change for every job to get what its place stands for."""
        running, ids, ends, rows = self.snapshot.target, self.ids, self.ends, self._rows()
        occupants = set(ids)
        result = {j: a for j, a in self._planned.items() if j not in occupants}
        new = [i for i, job_id in enumerate(ids) if job_id in self._planned]
        other = [k for k, (share, row) in enumerate(zip(self._shares, rows, strict=True)) if share != row]
        for i in sorted({*new, *self.owner[other].tolist()}):
            before = running.get(ids[i])
            after = tuple(map(new_share, rows[ends[i] : ends[i + 1]]))
            if before is None or not _same(before.shares, after):
                result[ids[i]] = Allocation(after)
        return result

    def _rows(self) -> list[tuple[str, int, int, float, float]]:
        """What every part in a row should hold, like a `Share`."""
        nodes, node = self.snapshot.nodes, self.where()
        cpus, memory = self.rungs.at(self.places)[:, self.owner]
        cpus *= self.gpus * nodes.cpus_per_gpu[node]
        memory *= self.gpus * nodes.memory_per_gpu[node]
        names, servers = [nodes.ids[at] for at in node.tolist()], [share[2] for share in self._shares]
        return list(zip(names, self.gpus.tolist(), servers, cpus.tolist(), memory.tolist(), strict=True))


def _same(shares: tuple[Share, ...], others: tuple[Share, ...]) -> bool:
    """Whether these are the same but for rounding."""
    return len(shares) == len(others) and all(
        a[:3] == b[:3]
        and abs(a.cpus - b.cpus) <= PART * b.cpus
        and abs(a.memory_gb - b.memory_gb) <= PART * b.memory_gb
        for a, b in zip(shares, others, strict=True)
    )
