"""Who sits with whom: put hungry jobs beside modest ones, so that no node is short while another has plenty.

Jobs that start now may take each other's seats for nothing. A job that runs is moved, or changes seats with
another one of the same size, only if what all of them gain is more than what the restart costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainyard.model.arrays import Floats, Ints
from trainyard.model.tolerance import CPUS_GB, PART
from trainyard.policy.tune.synergy.occupants import Occupants
from trainyard.policy.tune.synergy.share_out import Seat, worth

LITTLE = 0.05  # in proportional shares of a GPU: a node that lacks less is left alone
GAIN = 1e-3  # relative speed of one job: less is not worth the trouble
TRIES = 3  # exchanges looked at closely before a node is given up
ROOMY = 24  # nodes with the most room that exchanges are looked for with


class Single(NamedTuple):
    """The occupants that sit on one node each, as arrays: who, where, how big, and their best-case demand."""

    tenant: Ints
    node: Ints
    gpus: Ints
    cpus: Floats
    memory: Floats


def exchange(occupants: Occupants) -> None:
    """Change seats where it pays."""
    Regrouping(occupants).run()


class Regrouping:
    """One search for better seats. Slack is counted with every job at its best-case demand."""

    def __init__(self, occupants: Occupants) -> None:
        self.occupants = occupants
        self.nodes = occupants.snapshot.nodes
        self.cpus, self.memory = occupants.slack()
        self.unit_cpus = np.maximum(self.nodes.cpus_per_gpu, PART)
        self.unit_memory = np.maximum(self.nodes.memory_per_gpu, PART)
        self.single = self._singles()
        self.worths: dict[int, float] = {}

    def _singles(self) -> Single:
        t = self.occupants
        one = (np.diff(t.ends) == 1)[t.owner]
        node, (cpus, memory) = t.where()[one], t.held()[:, one]
        cpus *= self.nodes.cpus_per_gpu[node]
        memory *= self.nodes.memory_per_gpu[node]
        return Single(t.owner[one], node, t.gpus[one], cpus, memory)

    def run(self) -> None:
        """Seat the newcomers, then relieve the nodes that are short."""
        everywhere = np.arange(self.cpus.size)
        if not self._lack(self.cpus, self.memory, everywhere).any():
            return
        self._seat_newcomers()
        if not self._spare().any():
            return
        lack = self._lack(self.cpus, self.memory, everywhere)
        for node in np.argsort(-lack, kind="stable")[: np.count_nonzero(lack > LITTLE)].tolist():
            while self._short(node) and self._relieve(node):
                pass

    def _lack(self, cpus: Floats, memory: Floats, node: Ints) -> Floats:
        """What nodes lack, in proportional shares of a GPU."""
        lack: Floats = np.maximum(-cpus, 0.0) / self.unit_cpus[node]
        lack += np.maximum(-memory, 0.0) / self.unit_memory[node]
        return lack

    def _short(self, node: int) -> bool:
        at = slice(node, node + 1)
        return bool(self._lack(self.cpus[at], self.memory[at], np.array([node]))[0] > LITTLE)

    # -- jobs that start now ------------------------------------------------------------------------------

    def _seat_newcomers(self) -> None:
        """Deal the seats that starting jobs were given anew, kind by kind of seat, the largest first."""
        s = self.single
        new = np.array(self.occupants.starting, dtype=np.bool_)[s.tenant].nonzero()[0]
        if new.size < 2:
            return
        kind = self.nodes.kind
        kinds = kind[s.node[new]] - s.gpus[new] * (kind.max() + 1)  # by size, then by kind of node
        for k in np.unique(kinds):
            self._deal(new[kinds == k])

    def _deal(self, who: Ints) -> None:
        """Seat jobs of one size on nodes of one kind, the hungriest first, where they fit and little is left.

        Each seat keeps in reserve what the most modest of them needs: it will be taken in the end.
        """
        s = self.single
        if who.size < 2:
            return
        seats = np.bincount(s.node[who], minlength=self.cpus.size)
        self._occupy(s.node[who], -s.cpus[who], -s.memory[who])
        least = s.cpus[who].min(), s.memory[who].min()
        room = np.stack([self.cpus - seats * least[0], self.memory - seats * least[1]])
        unit = np.stack([self.unit_cpus, self.unit_memory])
        demands = s.cpus[who] - least[0] + 1j * (s.memory[who] - least[1])  # sorted like pairs, but quicker
        pairs, of = np.unique(demands, return_inverse=True)
        classes = np.column_stack([pairs.real, pairs.imag])
        hunger = classes[:, 0] / unit[0].mean() + classes[:, 1] / unit[1].mean()
        for c in np.argsort(-hunger, kind="stable").tolist():
            members = who[of == c]
            chosen = _seats_for(members.size, classes[c], seats, room, unit)
            moved = s.node[members] != chosen
            for i, node in zip(s.tenant[members[moved]].tolist(), chosen[moved].tolist(), strict=True):
                self.occupants.move(i, node)
            s.node[members] = chosen
        self._occupy(s.node[who], s.cpus[who], s.memory[who])

    def _occupy(self, node: Ints, cpus: Floats, memory: Floats) -> None:
        self.cpus -= np.bincount(node, cpus, self.cpus.size)
        self.memory -= np.bincount(node, memory, self.memory.size)

    # -- nodes that are short -----------------------------------------------------------------------------

    def _relieve(self, node: int) -> bool:
        """Make the best exchange that takes load off a node; return whether there was one."""
        for x, y, other in self._exchanges(node):
            if self._pays(x, y, other):
                self._exchange(x, y, other)
                return True
        return False

    def _exchanges(self, node: int) -> list[tuple[int, int, int]]:
        """The most promising (job here, job elsewhere or -1 for a free seat, other node)."""
        s, t = self.single, self.occupants
        here = (s.node == node).nonzero()[0]
        roomy = self._roomy(node)
        if not here.size or not roomy.size:
            return []
        mates = np.isin(s.node, roomy).nonzero()[0]
        # Beside a job that took its own share a free GPU does not mean that there is room for another one.
        free = np.array([0 if t.shared[other] else t.free_gpus[other] for other in roomy.tolist()])
        others = np.concatenate([s.node[mates], roomy])
        suits = np.concatenate(
            [s.gpus[mates] == s.gpus[here][:, None], free >= s.gpus[here][:, None]], axis=1
        )
        less_cpus = s.cpus[here][:, None] - np.concatenate([s.cpus[mates], np.zeros(roomy.size)])
        less_memory = s.memory[here][:, None] - np.concatenate([s.memory[mates], np.zeros(roomy.size)])
        gain = np.where(suits, self._relief(node, others, less_cpus, less_memory), -np.inf)
        best = gain.argmax(axis=1)
        gains = gain[np.arange(here.size), best]
        promising = [k for k in np.argsort(-gains, kind="stable")[:TRIES].tolist() if gains[k] > GAIN]
        return [
            (int(here[k]), int(mates[best[k]]) if best[k] < mates.size else -1, int(others[best[k]]))
            for k in promising
        ]

    def _roomy(self, node: int) -> Ints:
        """Nodes like this one that have the most to spare."""
        nodes = (self._spare() & (self.nodes.kind == self.nodes.kind[node])).nonzero()[0]
        room = self.cpus[nodes] / self.unit_cpus[nodes] + self.memory[nodes] / self.unit_memory[nodes]
        return np.sort(nodes[np.argsort(-room, kind="stable")[:ROOMY]])

    def _spare(self) -> npt.NDArray[np.bool_]:
        """Which nodes have something to spare and lack nothing."""
        some = (self.cpus > LITTLE * self.unit_cpus) | (self.memory > LITTLE * self.unit_memory)
        return some & (self.cpus >= -PART) & (self.memory >= -PART)

    def _relief(self, node: int, others: Ints, cpus: Floats, memory: Floats) -> Floats:
        """How much less the two nodes lack if this amount moves from one to the other."""
        here = np.array([node])
        before = self._lack(self.cpus[here], self.memory[here], here)
        before = before + self._lack(self.cpus[others], self.memory[others], others)
        after = self._lack(self.cpus[here] + cpus, self.memory[here] + memory, here)
        after += self._lack(self.cpus[others] - cpus, self.memory[others] - memory, others)
        # Of equals, spare the nodes that have most room.
        relief: Floats = before - after - CPUS_GB * (self.cpus[others] / self.unit_cpus[others])
        return relief

    def _pays(self, x: int, y: int, other: int) -> bool:
        """Whether all that share the two nodes gain more than the restarts cost."""
        t, s = self.occupants, self.single
        node = int(s.node[x])
        here, there = self._on(node), self._on(other)
        for at, members in ((node, here), (other, there)):
            if at not in self.worths:
                self.worths[at] = self._worth(members, at)
        here.remove(x)
        there.append(x)
        if y >= 0:
            there.remove(y)
            here.append(y)
        after = self._worth(here, node), self._worth(there, other)
        gain = sum(after) - self.worths[node] - self.worths[other]
        moved = [int(s.tenant[z]) for z in (x, y) if z >= 0 and not t.starting[int(s.tenant[z])]]
        lost = sum(t.snapshot.restart_cost(t.jobs[i]) for i in moved)
        if not all(t.jobs[i].preemptible for i in moved):
            return False
        if gain <= GAIN or (lost and gain * min(self._left_s(i) for i in moved) <= lost):
            return False
        self.worths[node], self.worths[other] = after
        return True

    def _left_s(self, i: int) -> float:
        snap = self.occupants.snapshot
        return snap.table.of[self.occupants.ids[i]].remaining_s(snap.now_s)

    def _on(self, node: int) -> list[int]:
        there: list[int] = (self.single.node == node).nonzero()[0].tolist()
        return there

    def _worth(self, members: list[int], node: int) -> float:
        all_gpus = float(self.nodes.gpus[node])
        s, ladders = self.single, self.occupants.ladders
        seats = [Seat(ladders[int(s.tenant[x])], float(s.gpus[x]) / all_gpus) for x in members]
        return worth(seats, self.occupants.room(node))

    def _exchange(self, x: int, y: int, other: int) -> None:
        s = self.single
        node = int(s.node[x])
        for z, start, end in ((x, node, other), (y, other, node)):
            if z >= 0:
                for slack, demand in ((self.cpus, s.cpus[z]), (self.memory, s.memory[z])):
                    slack[start] += demand
                    slack[end] -= demand
                s.node[z] = end
                self.occupants.move(int(s.tenant[z]), end)


def _seats_for(count: int, demand: Floats, seats: Ints, room: Floats, unit: Floats) -> Ints:
    """Seats for jobs with the same demand: where they fit, the fullest nodes first; then the least bad."""
    need = np.maximum(demand, PART)[:, None]
    fit = np.minimum(np.floor((room + PART) / need).min(axis=0), seats).astype(np.int64)
    fit = np.maximum(fit, 0)
    order = np.argsort((room / unit).sum(axis=0), kind="stable")
    before = fit[order].cumsum() - fit[order]
    taken = np.zeros_like(seats)
    taken[order] = np.clip(count - before, 0, fit[order])
    while (left := count - int(taken.sum())) > 0:
        lack = np.maximum(demand[:, None] * (taken + 1) - room, 0.0) / unit
        open_ = (seats > taken).nonzero()[0]
        taken[open_[np.argsort(lack.sum(axis=0)[open_], kind="stable")[:left]]] += 1
    seats -= taken
    room -= demand[:, None] * taken
    return np.repeat(np.arange(seats.size), taken)
