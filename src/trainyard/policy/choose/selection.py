"""What a choice of who runs is made from, and what it comes to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.stages import Stages
from trainyard.policy.turns import has_turn, takes_turns
from trainyard.state.jobs import Column
from trainyard.state.snapshot import Snapshot

C = Column


class Choice(NamedTuple):
    """Who should run, and how."""

    rows: Ints  # those that run, first come first
    target: Floats  # GPUs of every row of the table
    types: Ints | None = None  # GPU type of every row; -1: what it holds, or any
    servers: Ints | None = None  # parameter servers of every row; None: one for each worker
    by_type: Ints | None = None  # GPUs of every row by type, where that is settled
    moves: Mask | None = None  # rows whose GPUs by type are not what they hold


class Selection:
    """The active jobs, and what attempts to choose among them have shown so far."""

    def __init__(self, policy: Stages, snapshot: Snapshot) -> None:
        self.policy = policy
        self.snapshot = snapshot
        self.table = snapshot.table
        self.given = snapshot.table.column(C.GIVEN)
        self.one_type = len(snapshot.nodes.types) == 1
        self.barred: Mask | None = None  # jobs that found no place: they wait
        # Running jobs that may not be stopped: of an order that takes turns those that have not had theirs.
        self.stay: Mask = np.zeros(self.given.size, dtype=np.bool_)
        if takes_turns(policy.order, snapshot):
            self.stay = has_turn(snapshot, np.arange(self.given.size))
        self.turns = bool(self.stay.any())

    def ranked(self) -> Ints:
        """Return the rows that shapes are chosen for, first come first."""
        order, table = self.policy.order, self.table
        ranked = order.rank(self.snapshot)
        if not order.preemptive:
            running = self.given.nonzero()[0]
            first = np.lexsort((table.column(C.SEQ)[running], ~self.stay[running]))
            ranked = np.concatenate([running[first], ranked])
            if order.fill != "greedy":
                # A job behind one that does not fit, with all jobs at their smallest, waits too.
                least = np.where(self.stay[ranked], self.given[ranked], table.column(C.LEAST)[ranked])
                ranked = ranked[np.cumsum(least) <= self.snapshot.up_gpus]
        elif self.turns:
            ranked = ranked[np.argsort(~self.stay[ranked], kind="stable")]
        return ranked if self.barred is None else ranked[~self.barred[ranked]]

    def demand(self, ranked: Ints, gpus: Ints) -> Floats:
        """Return what each ranked job should have; running jobs keep theirs if none may be stopped."""
        demand: Floats = gpus.astype(np.float64)
        if not self.policy.order.preemptive:
            asked = (demand > 0) & ~self.stay[ranked]
            demand = np.where(asked, demand, self.given[ranked])
        elif self.turns:
            demand = np.where(self.stay[ranked], self.given[ranked], demand)
        return demand

    def servers(self, ranked: Ints, servers: Ints | None) -> Ints | None:
        """Return the servers of every row of the table; those that stay are not asked for any."""
        if servers is None:
            return None
        whole: Ints = np.zeros(self.given.size, dtype=np.int64)
        whole[ranked] = servers
        whole[self.stay] = 0
        return whole
