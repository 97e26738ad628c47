"""Who sits with whom: put hungry jobs beside modest ones, so that no node is short while another has plenty.

Jobs that start now may take each other's seats for nothing. A job that runs is moved, or changes seats with
another one of the same size, only if what all of them gain is more than what the restart costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.cluster import Floats, Ints
from trainyard.policy.divide import Seat, worth
from trainyard.policy.tenants import Tenants

GAIN = 1e-3  # relative speed of one job: less is not worth the trouble
TINY = 1e-9
TRIES = 3  # exchanges looked at closely before a node is given up


class Single(NamedTuple):
    """The tenants that sit on one node each, as arrays: who, where, how big, and their best-case demand."""

    tenant: Ints
    node: Ints
    gpus: Ints
    cpus: Floats
    memory: Floats


def regroup(tenants: Tenants) -> None:
    """Change seats where it pays."""
    Regrouping(tenants).run()


class Regrouping:
    """One search for better seats. Slack is counted with everybody at its best-case demand."""

    def __init__(self, tenants: Tenants) -> None:
        self.tenants = tenants
        self.nodes = tenants.snapshot.nodes
        self.cpus, self.memory = tenants.slack()
        self.single = self._singles()
        self.unit_cpus = np.maximum(self.nodes.cpus_per_gpu, TINY)
        self.unit_memory = np.maximum(self.nodes.memory_per_gpu, TINY)

    def _singles(self) -> Single:
        t = self.tenants
        rows = [
            (i, parts[0][0], parts[0][1], *t.ladders[i].at(t.places[i]))
            for i, parts in enumerate(t.parts)
            if len(parts) == 1
        ]
        tenant, node, gpus, cpus, memory = np.array(rows, dtype=np.float64).reshape(-1, 5).T
        at = node.astype(np.int64)
        size = gpus.astype(np.int64)
        return Single(
            tenant.astype(np.int64),
            at,
            size,
            cpus * gpus * self.nodes.cpus_per_gpu[at],
            memory * gpus * self.nodes.memory_per_gpu[at],
        )

    def run(self) -> None:
        """Seat the newcomers, then relieve the nodes that are short."""
        if not self._short().any():
            return
        self._seat_newcomers()
        given_up: set[int] = set()
        while (node := self._worst(given_up)) is not None:
            if not self._relieve(node):
                given_up.add(node)

    def _short(self) -> Floats:
        return self._lack(self.cpus, self.memory, np.arange(self.cpus.size))

    def _lack(self, cpus: Floats, memory: Floats, node: Ints) -> Floats:
        """What nodes lack, in proportional shares of a GPU."""
        lack: Floats = np.maximum(-cpus, 0.0) / self.unit_cpus[node]
        lack += np.maximum(-memory, 0.0) / self.unit_memory[node]
        return lack

    def _worst(self, given_up: set[int]) -> int | None:
        lack = self._short()
        lack[list(given_up)] = 0.0
        node = int(lack.argmax())
        return node if lack[node] > GAIN else None

    # -- jobs that start now ------------------------------------------------------------------------------

    def _seat_newcomers(self) -> None:
        """Deal the seats that starting jobs were given, the hungriest first, each where it fits best."""
        s = self.single
        new = np.array(self.tenants.starting, dtype=np.bool_)[s.tenant].nonzero()[0]
        if new.size < 2:
            return
        self._occupy(s.node[new], -s.cpus[new], -s.memory[new])
        kind = self.nodes.kind[s.node[new]]
        hunger = s.cpus[new] / self.nodes.cpus.mean() + s.memory[new] / self.nodes.memory_gb.mean()
        seats: dict[tuple[int, int], list[int]] = {}
        for x, of_kind in zip(new.tolist(), kind.tolist(), strict=True):
            seats.setdefault((int(s.gpus[x]), of_kind), []).append(int(s.node[x]))
        left = {k: np.bincount(nodes, minlength=self.cpus.size) for k, nodes in seats.items()}
        for at in np.lexsort((new, -hunger, -s.gpus[new])).tolist():
            x = int(new[at])
            count = left[int(s.gpus[x]), int(kind[at])]
            node = self._best_seat(x, count)
            count[node] -= 1
            self._occupy(np.array([node]), s.cpus[x : x + 1], s.memory[x : x + 1])
            self._put(x, node)

    def _best_seat(self, x: int, count: Ints) -> int:
        """The fullest node where the job's whole demand fits, else the one that lacks least with it."""
        nodes = count.nonzero()[0]
        cpus, memory = self.cpus[nodes] - self.single.cpus[x], self.memory[nodes] - self.single.memory[x]
        lack = self._lack(cpus, memory, nodes)
        room = cpus / self.unit_cpus[nodes] + memory / self.unit_memory[nodes]
        return int(nodes[np.lexsort((nodes, room, lack))[0]]) if nodes.size > 1 else int(nodes[0])

    def _occupy(self, node: Ints, cpus: Floats, memory: Floats) -> None:
        np.subtract.at(self.cpus, node, cpus)
        np.subtract.at(self.memory, node, memory)

    def _put(self, x: int, node: int) -> None:
        self.single.node[x] = node
        self.tenants.move(int(self.single.tenant[x]), node)

    # -- nodes that are short -----------------------------------------------------------------------------

    def _relieve(self, node: int) -> bool:
        """Make the best exchange that takes load off a node; return whether there was one."""
        here = (self.single.node == node).nonzero()[0]
        for x, y, other in self._exchanges(node, here):
            if self._pays(x, y, other):
                self._exchange(x, y, other)
                return True
        return False

    def _exchanges(self, node: int, here: Ints) -> list[tuple[int, int, int]]:
        """The most promising (job here, job elsewhere or -1 for a free seat, other node)."""
        s = self.single
        roomy = (self.cpus > 0) & (self.memory > 0) & (self.nodes.kind == self.nodes.kind[node])
        roomy[node] = False
        free_gpus = np.array(self.tenants.free_gpus)
        found: list[tuple[float, int, int, int]] = []
        there = roomy[s.node].nonzero()[0]
        for x in here.tolist():
            mates = there[s.gpus[there] == s.gpus[x]]
            seats = (roomy & (free_gpus >= s.gpus[x])).nonzero()[0]
            node_of = np.concatenate([s.node[mates], seats])
            if not node_of.size:
                continue
            less_cpus = s.cpus[x] - np.concatenate([s.cpus[mates], np.zeros(seats.size)])
            less_memory = s.memory[x] - np.concatenate([s.memory[mates], np.zeros(seats.size)])
            gain = self._relief(node, node_of, less_cpus, less_memory)
            best = int(gain.argmax())
            if gain[best] > GAIN:
                mate = int(mates[best]) if best < mates.size else -1
                found.append((-float(gain[best]), x, mate, int(node_of[best])))
        return [(x, mate, other) for _, x, mate, other in sorted(found)[:TRIES]]

    def _relief(self, node: int, others: Ints, cpus: Floats, memory: Floats) -> Floats:
        """How much less the two nodes lack if so much moves from one to the other."""
        here = np.full(others.size, node)
        before = self._lack(self.cpus[here], self.memory[here], here)
        before += self._lack(self.cpus[others], self.memory[others], others)
        after = self._lack(self.cpus[here] + cpus, self.memory[here] + memory, here)
        after += self._lack(self.cpus[others] - cpus, self.memory[others] - memory, others)
        # Of equals, leave the nodes that are fullest.
        return before - after - 1e-6 * (self.cpus[others] / self.unit_cpus[others])

    def _pays(self, x: int, y: int, other: int) -> bool:
        """Whether all that share the two nodes gain more than the restarts cost."""
        t, s = self.tenants, self.single
        node = int(s.node[x])
        here, there = self._on(node), self._on(other)
        before = self._worth(here, node) + self._worth(there, other)
        here.remove(x)
        there.append(x)
        if y >= 0:
            there.remove(y)
            here.append(y)
        gain = self._worth(here, node) + self._worth(there, other) - before
        if gain <= GAIN:
            return False
        moved = [int(s.tenant[z]) for z in (x, y) if z >= 0 and not t.starting[int(s.tenant[z])]]
        lost = sum(t.snapshot.restart_cost(t.jobs[i]) for i in moved)
        if not lost:
            return True
        left_s = min(self._left_s(i) for i in moved)
        return gain * left_s > lost

    def _left_s(self, i: int) -> float:
        snap = self.tenants.snapshot
        return float(snap.remaining_s_of(snap.table.row_of[self.tenants.ids[i]]))

    def _on(self, node: int) -> list[int]:
        return [int(x) for x in (self.single.node == node).nonzero()[0]]

    def _worth(self, members: list[int], node: int) -> float:
        all_gpus = float(self.nodes.gpus[node])
        s, ladders = self.single, self.tenants.ladders
        parts = [float(s.gpus[x]) / all_gpus for x in members]
        seats = [Seat(ladders[int(s.tenant[x])], p, p) for x, p in zip(members, parts, strict=True)]
        return worth(seats)

    def _exchange(self, x: int, y: int, other: int) -> None:
        s = self.single
        node = int(s.node[x])
        for z, start, end in ((x, node, other), (y, other, node)):
            if z >= 0:
                both = np.array([start, end])
                self._occupy(both, np.array([-1.0, 1.0]) * s.cpus[z], np.array([-1.0, 1.0]) * s.memory[z])
                self._put(z, end)
