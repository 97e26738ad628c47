"""What a backend does: make an allocation real, idempotently by (store, job, attempt), and say what it sees.

The unit is a *member*: one attempt of a job on one node. Whatever a backend is told it may be told again,
after a crash or because nobody saw it happen; what it has done already it does not do twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


class RunKey(NamedTuple):
    """One attempt of one job; the store that it belongs to is the backend's."""

    job_id: str
    attempt: int


class MemberKey(NamedTuple):
    """One attempt on one node."""

    job_id: str
    attempt: int
    node: str

    @property
    def run(self) -> RunKey:
        """The attempt."""
        return RunKey(self.job_id, self.attempt)


class Shares(NamedTuple):
    """CPUs and GB that all processes of a member have together."""

    cpus: float
    memory_gb: float


@dataclass(frozen=True, slots=True)
class Member:
    """What runs on one node."""

    node: str
    gpus: tuple[int, ...]  # indices
    servers: int
    shares: Shares
    first_rank: int  # of its workers
    first_server: int


@dataclass(frozen=True, slots=True)
class RunSpec:
    """Everything that a backend has to know to start an attempt."""

    key: RunKey
    spec: Mapping[str, Any]  # what to run, as the user said it (live/spec.py)
    members: tuple[Member, ...]
    batch_shares: tuple[float, ...]  # of every worker's part of the global batch, by rank
    lr_scale: float = 1.0

    @property
    def workers(self) -> int:
        """Workers on all nodes."""
        return sum(len(member.gpus) for member in self.members)

    @property
    def servers(self) -> int:
        """Parameter servers on all nodes."""
        return sum(member.servers for member in self.members)


class MemberState(StrEnum):
    """What a backend sees of a member."""

    ABSENT = "absent"  # nothing was ever started
    PENDING = "pending"  # it is being started
    RUNNING = "running"
    EXITED = "exited"  # nothing is left of it, and it is known how it ended
    LOST = "lost"  # nobody watches it any more; something of it may still run


@dataclass(frozen=True, slots=True)
class Exit:
    """How one process ended."""

    rank: int
    role: str
    code: int | None
    signal: int | None
    at: float  # wall clock of its node
    last_line: str = ""
    launches: bool = False  # it is no worker but started them (torchrun), and says nothing of their ends
    hint: str = ""  # where programs were looked for, if it found none


@dataclass(frozen=True, slots=True)
class Ended:
    """How a member ended."""

    exits: tuple[Exit, ...] = ()
    first: Exit | None = None  # who ended badly first
    started: bool = True
    why: str = ""  # it could not be started
    hint: str = ""  # where programs were looked for
    final: bool = False  # ... and trying again would not help
    out_of_memory: bool = False
    memory_gb: tuple[float, float] | None = None  # the most that it used, and what it had, if that is known
    grace_over: bool = False  # it did not stop in time
    grace_s: float = 0.0  # ... which was this
    stop_asked: bool = False  # its processes were told to stop before they ended
    lost: bool = False  # whoever could have said how it ended is gone


@dataclass(frozen=True, slots=True)
class Seen:
    """What a backend sees of one member now."""

    state: MemberState
    ended: Ended | None = None  # if it exited
    workers_over: bool = False  # it runs, but only servers are left of it, or it never had others
    first: Exit | None = None  # it runs, but one of its processes ended badly


@dataclass(frozen=True, slots=True)
class Progress:
    """What a job said of itself last."""

    at: float  # wall clock
    samples_done: float | None = None
    samples_total: float | None = None
    samples_per_s: float | None = None
    samples_saved: float | None = None
    loss: float | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """All members that a backend knows and that nobody told it to forget."""

    members: Mapping[MemberKey, Seen]
    progress: Mapping[RunKey, Progress] = field(default_factory=dict)
    gpus: Mapping[MemberKey, tuple[int, ...]] = field(default_factory=dict)  # where the engine chose them


@dataclass(frozen=True, slots=True)
class Unknown:
    """The engine did not answer: no evidence of anything."""

    why: str


class Backend(Protocol):
    """Makes allocations real."""

    name: str
    noticed: set[RunKey]  # runs to look at, since the last `hint`

    async def ensure_started(self, run: RunSpec) -> None:
        """Start all members of a run, unless they were started or told to be gone before."""
        ...

    async def ensure_stopping(self, key: RunKey, grace_s: float) -> None:
        """Tell a run to save its work and end; whatever is left after the time of grace is killed."""
        ...

    async def ensure_gone(self, key: RunKey) -> None:
        """End a run at once; it never starts after this, even if that is told late."""
        ...

    async def end_servers(self, key: RunKey) -> None:
        """All workers of a run are done: its parameter servers may go."""
        ...

    async def retune(self, key: RunKey, shares: Mapping[str, Shares]) -> bool:
        """Give a running job other CPUs or memory, by node; False if it is not there any more."""
        ...

    async def observe(self, only: Collection[RunKey] | None = None) -> Observation | Unknown:
        """Look at everything, or at some runs."""
        ...

    async def fence(self, node: str) -> bool:
        """Make certain that nothing of ours runs on a node; False if that is not certain yet."""
        ...

    async def listen(self, hint: Callable[[], None]) -> None:
        """Call `hint` whenever a look may show something new, until this is cancelled."""
        ...

    async def forget(self, key: RunKey) -> None:
        """How a run ended is written down: it need not be observed any more."""
        ...

    def logs(
        self, key: RunKey, rank: int, *, server: bool = False, offset: int = 0, lines: int | None = None
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Return the output of one process so far, in pieces, each with the offset after it.

        It begins at an offset, which counts all output there ever was, or with the last lines. What an engine
        has dropped is left out.
        """
        ...

    def dry_run(self, run: RunSpec) -> str:
        """Say what it would do, for people."""
        ...
