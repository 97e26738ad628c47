"""A yard in a real cluster: stops and kills take time, runs fail, events come late, twice, never.

What the core says is done later, and not always well. Every step is a kind, the name of a method, and a
number that settles the rest: hypothesis (tests/core/test_chaos.py) or a seeded run (bench/chaos.py) leads.
"""

from __future__ import annotations

import json
from typing import Any

from profile_cases import PROFILES
from trainyard.core.events import (
    DecisionDue,
    DecisionsPaused,
    DecisionsResumed,
    Event,
    GpuFailed,
    GpuRepaired,
    JobCancelled,
    JobChanged,
    JobFailed,
    JobFinished,
    JobGone,
    JobHeld,
    JobReleased,
    JobRetried,
    JobStarted,
    JobStopped,
    JobSubmitted,
    NodeDrained,
    NodeFailed,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodeRepaired,
    NodeUndrained,
    PolicyChanged,
    ProgressReported,
    ReservationDropped,
    ReservationMade,
    RulesChanged,
)
from trainyard.core.instructions import Ended, Fence, Ignored, Instruction, Kill, PlanRefused, Start, Stop
from trainyard.core.real.ends import ENDS
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.core.validate import validate
from trainyard.core.wire import from_record, to_record
from trainyard.core.yard import Yard
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.model.rules import Rules
from trainyard.model.terms import Terms, When
from trainyard.policy.grammar import parse_policy

ONE = Cluster("one", tuple(Node(f"n{i}", "V", 4, 12.0, 240.0) for i in range(4)))
TWO = Cluster(
    "two",
    (
        *(Node(f"n{i}", "V", 4, 16.0, 240.0) for i in range(2)),
        *(Node(f"n{i}", "K", 2, 8.0, 100.0) for i in (2, 3)),
    ),
    {"V": GpuType("V", 1.0), "K": GpuType("K", 0.3)},
)
SIZES = (1, 1, 2, 2, 3, 4, 8)
LENGTHS = (10.0, 40.0, 300.0, 3000.0)
OFTEN = (
    "submit",
    "submit",
    "submit",
    "wait",
    "wait",
    "wait",
    "due",
    "due",
    "due",
    "obey",
    "obey",
    "obey",
    "obey",
    "finish",
)
SELDOM = (
    *("late", "twice", "lose", "fail_run", "gone", "cancel", "hold", "release", "change", "retry", "report"),
    *("node_fails", "node_back", "fence", "drain", "undrain", "join", "leave", "gpu_fails", "gpu_back"),
    *("reserve", "unreserve", "policy", "nobody", "start_confirmed"),
    *("other_rules", "pause", "resume"),
)
KINDS = OFTEN * 3 + SELDOM
POLICIES = ("fifo", "srtf", "las", "srtf+tune", "easy")


class Chaos:
    """The yard, the engine's duties that are not done yet, and the log of all events."""

    def __init__(self, policy: str, cluster: Cluster, stalls: tuple[float, float], indices: bool) -> None:
        self.now_s, self.submitted, self.joined, self.reserved = 0.0, 0, 0, 0
        self.rules = Rules(start_s=stalls[0], restart_s=stalls[1])
        self.first = cluster, policy, indices
        self.yard = self.begin()
        self.duties: list[Event] = []  # what the engine will report some time
        self.told: list[Event] = []  # what it reported
        self.log: list[dict[str, Any]] = []
        self.answers: list[str] = []
        self.over: set[str] = set()
        self.refused: list[str] = []
        self.ignored = 0

    def begin(self) -> Yard:
        """Return an empty yard of this kind."""
        cluster, policy, indices = self.first
        decide = parse_policy(policy).decide
        return Yard(cluster, decide, self.rules, indices=indices, remember=30, policies=self.find)

    @staticmethod
    def find(name: str) -> Any:
        """Find a policy by its name."""
        return parse_policy(name)

    def step(self, kind: str, number: int) -> None:
        """Take one step; the books are in order after it."""
        getattr(self, kind)(number)

    def tell(self, event: Event) -> list[Instruction]:
        """Hand in an event, do what is said, look at the books."""
        record = json.loads(json.dumps(to_record(event)))
        self.log.append(record)
        assert from_record(record) == event
        done = self.yard.handle(event)
        self.answers.append(repr([i for i in done if not isinstance(i, Ignored)]))
        validate(self.yard)
        for i in done:
            self._take_note(i)
        return done

    def _take_note(self, i: Instruction) -> None:
        if isinstance(i, Stop):
            self.duties.append(JobStopped(0.0, i.job_id, i.attempt))
        elif isinstance(i, Kill):
            record = self.yard.find(i.job_id)
            assert record is not None
            assert record.occupies is not None
            nodes = [share.node for share in record.occupies.shares]
            self.duties += [JobGone(0.0, i.job_id, i.attempt, node) for node in nodes]
        elif isinstance(i, Fence):
            self.duties.append(NodeFenced(0.0, i.node))
        elif isinstance(i, Ignored):
            self.ignored += 1
        elif isinstance(i, PlanRefused):
            self.refused.append(i.why)
        elif isinstance(i, Ended):
            self.over.add(i.job.job_id)
        elif isinstance(i, Start):
            assert i.attempt > 0

    # -- what users do ----------------------------------------------------------------------

    def submit(self, number: int) -> None:
        """A job comes: with or without a profile, terms, a tenant, others to wait for."""
        self.submitted += 1
        profile, work = PROFILES[number % 4], LENGTHS[number // 4 % len(LENGTHS)]
        amount: dict[str, Any] = (
            {}
            if number % 13 == 0
            else {"duration_s": work}
            if profile is None
            else {"samples": 2000.0 * work}
        )
        gpus = SIZES[number % len(SIZES)]
        more: dict[str, Any] = {"tenant": ("", "a", "b")[number % 3], "checkpoint_s": 60.0}
        if number % 5 == 0:
            more |= {"min_gpus": 1, "max_gpus": gpus + 3}
        if number % 2:
            others = [f"j{self.submitted - k}" for k in (1, 3) if number % 11 == k]
            ways: tuple[When, ...] = ("ok", "any", "failed")
            after = dict.fromkeys(others, ways[number % 3])
            limits = (5.0, 50.0, float("inf"), float("inf"))
            more["terms"] = Terms(
                number % 3, (9,), limits[number % 4], limits[number // 2 % 4], after, number % 17 == 0
            )
        self.tell(
            JobSubmitted(
                self.now_s, Job(f"j{self.submitted}", self.now_s, gpus, **amount, profile=profile, **more)
            )
        )

    def cancel(self, number: int) -> None:
        """A job is withdrawn, at once or not."""
        self.tell(JobCancelled(self.now_s, self._job(number), number % 2 == 0))

    def hold(self, number: int) -> None:
        """A job is held."""
        self.tell(JobHeld(self.now_s, self._job(number)))

    def release(self, number: int) -> None:
        """A job is released."""
        held = [r.job_id for r in self.yard.parked.values() if r.state.value == "held"]
        self.tell(
            JobReleased(self.now_s, held[number % len(held)] if held and number % 4 else self._job(number))
        )

    def change(self, number: int) -> None:
        """A job is changed, perhaps in a way that cannot be."""
        what = ("priority", "time_limit_s", "retries", "deadline_s", "min_gpus", "max_gpus", "gpus")[
            number % 7
        ]
        self.tell(JobChanged(self.now_s, self._job(number // 7), {what: number % 9}))

    def retry(self, number: int) -> None:
        """A job that is over is tried again."""
        over = sorted(self.yard.over.records)
        self.tell(JobRetried(self.now_s, over[number % len(over)] if over else "j1"))

    # -- what the engine does ----------------------------------------------------------------------

    def obey(self, number: int) -> None:
        """One of the things that had to be done is done."""
        if self.duties:
            event = self.duties.pop(number % len(self.duties))
            event.time_s = self.now_s
            if isinstance(event, JobStopped) and number % 7 == 0:
                event.saved = False
            self.told.append(event)
            self.tell(event)

    def late(self, number: int) -> None:
        """Something comes that happened long ago, or that is in the future."""
        if self.told:
            event = self.told[number % len(self.told)]
            event.time_s = (0.0, self.now_s - 5.0, float("nan"))[number % 3]
            if event.time_s == event.time_s:
                self.tell(event)
            else:
                assert isinstance(self.yard.handle(event)[0], Ignored)

    def twice(self, number: int) -> None:
        """Something comes again."""
        if self.told:
            event = self.told[-1 - number % min(3, len(self.told))]
            event.time_s = self.now_s
            self.tell(event)

    def lose(self, number: int) -> None:
        """A report is lost; a second look of the engine finds that nothing is there."""
        if self.duties:
            event = self.duties.pop(number % len(self.duties))
            if isinstance(event, (JobStopped, JobGone)):
                self.duties.append(JobGone(0.0, event.job_id, event.attempt))
            else:
                self.duties.append(event)

    def finish(self, number: int) -> None:
        """A run ends well."""
        self._of_run(number, lambda job_id, attempt: JobFinished(self.now_s, job_id, attempt=attempt))

    def fail_run(self, number: int) -> None:
        """A run ends badly, in any of the ways there are."""
        kind = (*ENDS, "odd")[number % (len(ENDS) + 1)]
        gone = number % 3 > 0

        def event(job_id: str, attempt: int) -> Event:
            return JobFailed(self.now_s, job_id, kind, "it broke", 1, attempt, gone)

        self._of_run(number // 3, event)

    def gone(self, number: int) -> None:
        """A member of a run is gone, or all of it."""
        node = ("", f"n{number % 4}")[number % 2]
        self._of_run(number // 2, lambda job_id, attempt: JobGone(self.now_s, job_id, attempt, node))

    def start_confirmed(self, number: int) -> None:
        """A start is confirmed, with GPUs of the engine's own choice."""
        gpus = {f"n{number % 4}": tuple(range(number % 5))} if number % 2 else {}
        self._of_run(number, lambda job_id, attempt: JobStarted(self.now_s, job_id, attempt, gpus))

    def report(self, number: int) -> None:
        """A run says how far it is."""
        left = (0.0, 5.0, 500.0, 1e9, float("inf"))[number % 5]
        if left == float("inf"):
            return
        self._of_run(
            number, lambda job_id, attempt: ProgressReported(self.now_s, job_id, left, attempt=attempt)
        )

    def _of_run(self, number: int, make: Any) -> None:
        """Make an event of the present attempt of a job; now and then of an earlier one, or of none."""
        runs = [
            r for r in (*self.yard.records.values(), *self.yard.parked.values()) if r.occupies is not None
        ]
        if runs:
            record = runs[number % len(runs)]
            event = make(record.job_id, max(record.attempt - (number % 6 == 0), 0))
            self.told.append(event)
            self.tell(event)

    # -- what nodes do ----------------------------------------------------------------------

    def node_fails(self, number: int) -> None:
        """A node fails, perhaps again."""
        self.tell(NodeFailed(self.now_s, self._node(number)))

    def node_back(self, number: int) -> None:
        """A node is back, perhaps one that never was away."""
        down = sorted(self.yard.conditions.down)
        node = down[number % len(down)] if down and number % 5 else self._node(number)
        self.tell(NodeRepaired(self.now_s, node))

    def fence(self, number: int) -> None:
        """A node is fenced."""
        self.tell(NodeFenced(self.now_s, self._node(number)))

    def drain(self, number: int) -> None:
        """A node is drained."""
        self.tell(NodeDrained(self.now_s, self._node(number)))

    def undrain(self, number: int) -> None:
        """A node is undrained."""
        drained = sorted(self.yard.conditions.drained)
        self.tell(NodeUndrained(self.now_s, drained[number % len(drained)] if drained else "n0"))

    def join(self, number: int) -> None:
        """A node joins: a new one, or one that had left, as it was or with other GPUs."""
        away = sorted(n for n in self.yard.conditions.away if "~" not in n)
        if away:
            name, old = away[number % len(away)], self.yard.cluster.nodes
            node = next(n for n in old if n.node_id == name)
            if number % 3 == 0:
                node = Node(name, node.gpu_type, 1 + number % 6, 8.0, 100.0)
        elif len(self.yard.cluster.nodes) < 8:
            self.joined += 1
            node = Node(f"m{self.joined}", ("V", "K", "X")[number % 3], 1 + number % 6, 8.0, 100.0)
        else:
            node = self.yard.cluster.nodes[number % 2]
        self.tell(NodeJoined(self.now_s, node))

    def leave(self, number: int) -> None:
        """A node leaves, seldom."""
        if number % 3 == 0 and len(self.yard.cluster.nodes) - len(self.yard.conditions.away) > 2:
            self.tell(NodeLeft(self.now_s, self._node(number)))

    def gpu_fails(self, number: int) -> None:
        """A GPU fails."""
        self.tell(GpuFailed(self.now_s, self._node(number), number // 8 % 5))

    def gpu_back(self, number: int) -> None:
        """A GPU is back."""
        broken = sorted((n, i) for n, those in self.yard.conditions.broken.items() for i in those)
        node, index = broken[number % len(broken)] if broken else ("n0", 0)
        self.tell(GpuRepaired(self.now_s, node, index))

    def reserve(self, number: int) -> None:
        """Nodes are reserved, for a tenant or for nobody."""
        self.reserved += 1
        begin = self.now_s + (0.0, 10.0, 100.0)[number % 3]
        nodes: dict[str, Any] = (
            {"gpus": 1 + number % 6} if number % 4 == 0 else {"nodes": (self._node(number),)}
        )
        tenant = ("", "a", "b")[number // 3 % 3]
        self.tell(
            ReservationMade(
                self.now_s, Reservation(f"r{self.reserved}", begin, begin + 60.0, tenant=tenant, **nodes)
            )
        )

    def unreserve(self, number: int) -> None:
        """A reservation is given up, perhaps one that is over."""
        self.tell(ReservationDropped(self.now_s, f"r{max(self.reserved - number % 2, 0)}"))

    # -- time ----------------------------------------------------------------------

    def wait(self, number: int) -> None:
        """Time goes by."""
        self.now_s += (0.5, 3.0, 7.0, 40.0, 400.0)[number % 5]

    def due(self, _: int) -> None:
        """Decide."""
        self.tell(DecisionDue(self.now_s))

    def policy(self, number: int) -> None:
        """Another policy decides, if it is known."""
        if number % 4 == 0:
            self.tell(PolicyChanged(self.now_s, (*POLICIES, "nonsense(")[number % 6]))

    def other_rules(self, number: int) -> None:
        """Other rules hold."""
        values: tuple[dict[str, float | int | None], ...] = (
            {"back_off_s": 1.0},
            {"most_idle": 2, "most_starts": 2},
            {"restart_s": 5.0, "round_s": 30.0},
            {"restart_s": None, "round_s": None},
        )
        self.tell(RulesChanged(self.now_s, values[number % 4]))

    def pause(self, number: int) -> None:
        """Decisions are paused, and go on."""
        self.tell(DecisionsPaused(self.now_s, stop=number % 2 == 0))
        if number % 8:
            self.resume(number)

    def resume(self, _: int) -> None:
        """Decisions go on."""
        self.tell(DecisionsResumed(self.now_s))

    def nobody(self, number: int) -> None:
        """Something is said of nobody and nothing that is known."""
        unknown: tuple[Event, ...] = (
            JobFinished(self.now_s, "ghost"),
            JobStopped(self.now_s, "ghost"),
            JobGone(self.now_s, "ghost", 1, "n0"),
            NodeFailed(self.now_s, "ghost"),
            GpuFailed(self.now_s, "ghost", 0),
            JobHeld(self.now_s, "ghost"),
        )
        done = self.tell(unknown[number % len(unknown)])
        assert any(isinstance(i, Ignored) for i in done)

    def _job(self, number: int) -> str:
        """One of the jobs that are there; now and then one that is not."""
        names = [*self.yard.records, *self.yard.parked]
        return names[number % len(names)] if names and number % 10 else f"j{number}"

    def _node(self, number: int) -> str:
        names = [n for n in self.yard.nodes.ids if "~" not in n]
        return names[number % len(names)]

    # -- afterwards ----------------------------------------------------------------------

    def look(self) -> str:
        """Return the whole state as text."""
        return json.dumps(state_of(self.yard), sort_keys=True)

    def replayed(self) -> tuple[str, list[str]]:
        """Hand the whole log to a new yard; return its state and what it said."""
        other = self.begin()
        told = [other.handle(from_record(record)) for record in self.log]
        said = [repr([i for i in each if not isinstance(i, Ignored)]) for each in told]
        return json.dumps(state_of(other), sort_keys=True), said

    def twins(self) -> list[Yard]:
        """Return a fork, and a yard that was written down and read again."""
        policy = self.yard.decider
        read = yard_of(json.loads(json.dumps(state_of(self.yard))), policy, self.find)
        return [fork(self.yard), read]
