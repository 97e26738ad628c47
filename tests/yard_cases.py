"""A yard that is led through random steps, for tests of what must hold in any state that events lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from conftest import PROFILES
from trainyard.core.events import (
    DecisionDue,
    JobCancelled,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    ProgressReported,
)
from trainyard.core.instructions import Stop
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State
from trainyard.state.room import fewest_nodes
from trainyard.state.snapshot import Snapshot

# Slower GPUs than those that jobs are measured by, and nodes that gangs have to span.
SLOW = Cluster("slow", tuple(Node(f"n{i}", "S", 4, 12.0, 240.0) for i in range(3)), {"S": GpuType("S", 0.4)})
SIZES = (1, 1, 2, 2, 3, 4, 8)
LENGTHS = (10.0, 10.0, 40.0, 300.0)  # often equal
STALLS = ((0.0, 0.0), (5.0, 0.0), (2.0, 60.0))  # start_s, restart_s
KINDS = (
    *("submit", "submit", "submit", "submit", "swift", "swift", "wait", "wait", "look"),
    *("due", "stop", "move", "finish", "cancel", "report", "fail", "repair"),
)
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 200)), max_size=70)


class Driven:
    """Each step is a kind, the name of a method, and a number that settles the rest."""

    def __init__(
        self, policy: str, cluster: Cluster, stalls: tuple[float, float], now_s: float = 0.0
    ) -> None:
        self.policy, self.now_s, self.submitted = parse_policy(policy), now_s, 0
        self.yard = Yard(cluster, self._ask, Rules(start_s=stalls[0], restart_s=stalls[1]))
        self._own: Plan | None = None  # a plan that is not the policy's

    def step(self, kind: str, number: int) -> None:
        """Take one step; the books are in order after it."""
        getattr(self, kind)(number)
        validate(self.yard)

    def decide(self, snapshot: Snapshot) -> Plan:
        """Decide as the policy does; tests look here."""
        return self.policy.decide(snapshot)

    def look(self, _: int) -> None:
        """Do nothing; tests look here."""

    def submit(self, number: int) -> None:
        """A job comes, with or without a profile."""
        self.submitted += 1
        profile, work = PROFILES[number % 4], LENGTHS[number // 4 % len(LENGTHS)]
        amount = {"duration_s": work} if profile is None else {"samples": 2000.0 * work}
        job = Job(f"j{self.submitted}", self.now_s, SIZES[number % len(SIZES)], **amount, profile=profile)
        self.yard.handle(JobSubmitted(self.now_s, job))

    def due(self, _: int) -> None:
        """Decide; jobs that are told to stop do so later."""
        self.yard.handle(DecisionDue(self.now_s))

    def swift(self, _: int) -> None:
        """Decide, and confirm all stops at once."""
        for instruction in self.yard.handle(DecisionDue(self.now_s)):
            if isinstance(instruction, Stop):
                self.yard.handle(JobStopped(self.now_s, instruction.job_id))

    def move(self, number: int) -> None:
        """One is sent to other nodes, if it finds room there; it stops first, later."""
        yard, those = self.yard, list(self.yard.target)
        record = yard.records[those[number % len(those)]] if those else None
        parts = fewest_nodes(yard.free.levels, record.given) if record else None
        if record is None or parts is None or not yard.free.plain:
            return  # or others have the CPUs of free GPUs
        serves, share, ids = bool(record.job.servers), yard.nodes.share_per_gpu, yard.nodes.ids
        shares = (Share(ids[i], g, serves * g, g * share[i][0], g * share[i][1]) for i, g in parts)
        self._own = Plan({record.job_id: Allocation(tuple(shares))})
        yard.handle(DecisionDue(self.now_s))

    def _ask(self, snapshot: Snapshot) -> Plan:
        own, self._own = self._own, None
        return self.decide(snapshot) if own is None else own

    def wait(self, number: int) -> None:
        """Time goes by."""
        self.now_s += (0.5, 3.0, 7.0, 40.0)[number % 4]

    def stop(self, number: int) -> None:
        """One that was told to stop has."""
        self._tell(number, JobStopped, State.STOPPING)

    def finish(self, number: int) -> None:
        """One ends."""
        self._tell(number, JobFinished, State.RUNNING, State.STOPPING)

    def cancel(self, number: int) -> None:
        """One is withdrawn."""
        self._tell(number, JobCancelled, *State)

    def report(self, number: int) -> None:
        """One says that less, or more, or as much is left as was thought."""
        part = (0.0, 0.5, 0.99, 1.0)[number % 4]
        self._tell(number // 4, lambda at, name: ProgressReported(at, name, self._done(name, part)), *State)

    def fail(self, number: int) -> None:
        """A node fails, perhaps again."""
        self.yard.handle(NodeFailed(self.now_s, self.yard.nodes.ids[number % 3]))

    def repair(self, number: int) -> None:
        """A node is back, perhaps one that never was away."""
        self.yard.handle(NodeRepaired(self.now_s, self.yard.nodes.ids[number % 3]))

    def _tell(self, number: int, event: Callable[[float, str], Any], *states: State) -> None:
        those = [r for r in self.yard.table.records if r.state in states]
        if those:
            self.yard.handle(event(self.now_s, those[number % len(those)].job_id))

    def _done(self, name: str, part: float) -> float:
        record = self.yard.records[name]
        return record.total - part * record.remaining_at(self.now_s)
