"""The books of an admission: who has how many GPUs so far, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainyard.policy.choose.quota import Quota
from trainyard.state.capacity import up_by_type
from trainyard.state.record import Record
from trainyard.state.snapshot import Snapshot

Gpus = list[int]  # by type where the size stage chooses that, else one number


@dataclass(slots=True)
class Candidate:
    """A job that may run, and what it has been given so far in this decision."""

    record: Record
    needs: int  # fewest GPUs that it may run with
    grade: tuple[int, int] = (0, 0)  # the class it belongs to; the smallest goes first
    fixed: bool = False  # it runs and must stay as it is
    spared: bool = False  # it runs and must not be stopped
    wanted: Gpus = field(default_factory=list)  # by the size stage
    servers: int = 0  # the same
    has: Gpus = field(default_factory=list)

    @property
    def gpus(self) -> int:
        """GPUs that it has been given so far."""
        return sum(self.has)


class Ledger:
    """GPUs that are left, by type or all as one, and what is left of the tenants' limits."""

    def __init__(self, snapshot: Snapshot, by_type: bool) -> None:
        up: Gpus = up_by_type(snapshot).tolist()
        self.by_type = by_type
        self.left = up if by_type else [sum(up)]
        self.of_type = up.copy()  # what jobs that accept one type only leave of it
        self.quota = Quota(snapshot.nodes.cluster.tenants)

    def most(self, candidate: Candidate, wanted: Gpus) -> Gpus:
        """Return as much of what is wanted as there is for the job, in a size that it may have."""
        has, job = candidate.gpus, candidate.record.job
        there = [min(w, h + left) for w, h, left in zip(wanted, candidate.has, self.left, strict=True)]
        most = min(sum(there), self.allowance(candidate))
        size = job.allowed(int(most))
        return cut(there, size) if size >= max(candidate.needs, has) else []

    def allowance(self, candidate: Candidate) -> float:
        """GPUs that the job may have by its tenant's limit and by the only type it accepts."""
        allowed, type_ = self.quota.left(candidate.record.job), candidate.record.type_index
        if type_ >= 0 and not self.by_type:
            allowed = min(allowed, self.of_type[type_])
        return candidate.gpus + allowed

    def give(self, candidate: Candidate, gpus: Gpus) -> None:
        """Let the job have so many in place of what it has."""
        more, record = sum(gpus) - candidate.gpus, candidate.record
        self.left = [left + h - g for left, h, g in zip(self.left, candidate.has, gpus, strict=True)]
        self.quota.take(record.job, more)
        if record.type_index >= 0:
            self.of_type[record.type_index] -= more
        candidate.has = gpus


def cut(gpus: Gpus, size: int) -> Gpus:
    """Leave so many GPUs, those of the types with most of them."""
    left, kept = size, [0] * len(gpus)
    for type_ in sorted(range(len(gpus)), key=lambda t: -gpus[t]):
        kept[type_] = min(gpus[type_], left)
        left -= kept[type_]
    return kept
