"""Allocations (where a job runs, with what) and plans (what should run now)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

from trainyard.model.refusal import Refusal


class Share(NamedTuple):
    """What a job holds on one node."""

    node: str
    gpus: int
    servers: int
    cpus: float
    memory_gb: float

    def plus(self, more: Share) -> Share:
        """Return both together, on the same node."""
        node, gpus, servers, cpus, memory_gb = self
        _, more_gpus, more_servers, more_cpus, more_gb = more
        return Share(node, gpus + more_gpus, servers + more_servers, cpus + more_cpus, memory_gb + more_gb)


_set = object.__setattr__


@dataclass(frozen=True, slots=True, init=False)
class Allocation:
    """Everything a job holds: its share of each node."""

    shares: tuple[Share, ...]
    gpus: int = field(init=False, repr=False, compare=False)  # on all nodes
    # The node's index in its table if these are GPUs of one node with their proportional share, else -1.
    at: int = field(init=False, repr=False, compare=False)

    def __init__(self, shares: tuple[Share, ...], at: int = -1) -> None:
        gpus = shares[0].gpus if len(shares) == 1 else sum([share.gpus for share in shares])
        _set(self, "shares", shares)
        _set(self, "gpus", gpus)
        _set(self, "at", at)

    @property
    def workers(self) -> tuple[tuple[str, int], ...]:
        """(node, GPUs) pairs."""
        shares = self.shares
        if len(shares) == 1:
            return (shares[0][:2],)
        return tuple([share[:2] for share in shares])

    @property
    def servers(self) -> int:
        """Parameter servers on all nodes."""
        return sum([share.servers for share in self.shares])

    @property
    def seats(self) -> tuple[tuple[str, int, int], ...]:
        """(node, GPUs, servers): a change here restarts the job, a change of CPUs or memory does not."""
        return tuple([share[:3] for share in self.shares])


class Plan(NamedTuple):
    """What should run now, as changes against what runs: None stops a job; jobs not named stay."""

    changes: Mapping[str, Allocation | None] = MappingProxyType({})
    wake_s: float = inf  # the policy wants to be asked again then, whatever happens or not until then
    notes: Mapping[str, Any] = MappingProxyType({})  # what the policy says of this decision
    why: Mapping[str, Refusal] = MappingProxyType(
        {}
    )  # by job that has to wait, if the policy was asked to say

    def allocations(self, target: Mapping[str, Allocation]) -> dict[str, Allocation]:
        """Job -> allocation for everything that should run beside what the target keeps; all others wait."""
        whole = {job: a for job, a in target.items() if job not in self.changes}
        whole.update((job, a) for job, a in self.changes.items() if a is not None)
        return whole
