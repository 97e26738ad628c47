"""Who has used how much of its share, and when that will change who goes first."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log1p
from typing import NamedTuple

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.job import Job
from trainyard.policy.stages import Changes
from trainyard.state.snapshot import Snapshot
from trainyard.state.usage import Name, Usage, names_of


class Course(NamedTuple):
    """Usage by weight from now on: `rest + fades e^(-l t)`."""

    rest: float
    fades: float


class Standing:
    """The usage by weight of all accounts, as it is now and as it will be after some changes."""

    def __init__(self, snapshot: Snapshot, half_life_s: float) -> None:
        self.snapshot = snapshot
        self.usage = snapshot.usage or _of_active_jobs(snapshot, half_life_s)

    def weight(self, name: Name) -> float:
        """The weight of a tenant; users of one tenant weigh the same."""
        tenant = self.snapshot.nodes.cluster.tenants.get(name[0])
        return 1.0 if tenant is None or len(name) > 1 else tenant.weight

    def columns(self) -> tuple[Floats, Floats]:
        """Usage by weight of the tenant, and usage of the user, of every active job."""
        known: dict[Name, float] = {}
        shares = np.empty((2, len(self.snapshot.table)))
        for row, job in enumerate(self.snapshot.table.jobs):
            for which, name in enumerate(names_of(job)):
                if name not in known:
                    known[name] = self.usage.gpu_s(name, self.snapshot.now_s) / self.weight(name)
                shares[which, row] = known[name]
        return shares[0], shares[1]

    def overtakes_s(self, waits: Name, runs: Name, held: dict[Name, int]) -> float:
        """When the one has used no more than the other, by weight, if they hold so many GPUs until then."""
        (a, b), (c, d) = self._course(waits, held), self._course(runs, held)
        ahead = (a + b) - (c + d)
        if ahead <= 0:
            return self.snapshot.now_s
        part = ahead / (b - d) if b > d else inf
        return self.snapshot.now_s - log1p(-part) / self.usage.pace if part < 1 else inf

    def _course(self, name: Name, held: dict[Name, int]) -> Course:
        used, weight = self.usage.gpu_s(name, self.snapshot.now_s), self.weight(name)
        rest = held.get(name, 0) / self.usage.pace
        return Course(rest / weight, (used - rest) / weight)


def held_after(snapshot: Snapshot, changes: Changes) -> dict[str, int]:
    """GPUs of every active job once these changes are made."""
    held = {record.job_id: record.given for record in snapshot.table.records}
    return held | {job_id: 0 if a is None else a.gpus for job_id, a in changes.items()}


def by_account(jobs: Iterable[tuple[Job, int]]) -> dict[Name, int]:
    """GPUs of every account, from those of every job."""
    held: dict[Name, int] = {}
    for job, gpus in jobs:
        for name in names_of(job):
            held[name] = held.get(name, 0) + gpus
    return held


def _of_active_jobs(snapshot: Snapshot, half_life_s: float) -> Usage:
    """Where nobody kept count: what the active jobs have held so far."""
    usage = Usage(half_life_s)
    for record in snapshot.table.records:
        usage.change(record.job, snapshot.now_s, record.given, record.attained_gpu_s(snapshot.now_s))
    return usage
