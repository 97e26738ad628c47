"""Allocations (where a job runs, with what) and plans (what should run now)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trainyard.model.refusal import Refusal

Part = tuple[int, int, float, float]  # index of a node, GPUs, CPUs and GB that are taken of it


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


class Allocation:
    """Everything a job holds: its share of each node. It never changes.

    `plain` is the same by the nodes' indices in their table, if every GPU comes with its node's proportional
    share and with nothing else. Only a `NodeTable` gives that.
    """

    __slots__ = ("gpus", "plain", "shares")

    def __init__(self, shares: tuple[Share, ...], plain: tuple[Part, ...] = ()) -> None:
        # Final, and not refused when it runs: that would make each of them take twice as long.
        self.shares: Final = shares
        self.gpus: Final = shares[0][1] if len(shares) == 1 else sum([share[1] for share in shares])
        self.plain: Final = plain

    def __reduce__(self) -> tuple[object, ...]:
        return Allocation, (self.shares, self.plain)  # compiled, it could be neither copied nor pickled else

    def __eq__(self, other: object) -> bool:
        return self.shares == other.shares if isinstance(other, Allocation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.shares)

    def __repr__(self) -> str:
        return f"Allocation({self.shares!r})"

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
