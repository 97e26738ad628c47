"""The simulator: a clock and a heap around the core."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from time import perf_counter

import numpy as np

from trainyard.core.events import (
    DecisionDue,
    Ended,
    Event,
    Instruction,
    JobFinished,
    JobStopped,
    JobSubmitted,
    NodeFailed,
    NodeRepaired,
    Retune,
    Start,
    Stop,
    Wake,
)
from trainyard.core.states import State
from trainyard.core.watcher import Watcher
from trainyard.core.yard import Yard
from trainyard.errors import InputError, TrainyardError
from trainyard.garbage import no_collection
from trainyard.model.arrays import Floats
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.model.tolerance import COUNT
from trainyard.policy.policy import Policy
from trainyard.sim.failures import Failure
from trainyard.sim.recorder import Recorder, TimedPolicy, so_far
from trainyard.sim.result import Result

# At equal times: completions free room, nodes come and go, jobs arrive, and then the policy is asked.
FINISH, NODE, ARRIVAL, DECISION = range(4)

# (time, priority, sequence, what, number of the start that it belongs to)
Entry = tuple[float, int, int, Event | Wake, int]

# How a job ends that the trace says ended so; any other ends well.
DONE = State.DONE
OUTCOMES = {
    **dict.fromkeys(("failed", "fail", "error", "timeout", "node_fail"), State.FAILED),
    **dict.fromkeys(("cancelled", "canceled", "killed"), State.CANCELLED),
}


class Simulator:
    """Runs one policy over one list of jobs."""

    def __init__(
        self,
        cluster: Cluster,
        jobs: Sequence[Job],
        policy: Policy,
        rules: Rules | None = None,
        failures: Iterable[Failure] = (),
        progress: Callable[[int], None] | None = None,
        speed: SpeedModel | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.rules = rules or Rules()
        self.policy = policy
        self._decide = TimedPolicy(policy)
        self.jobs = sorted(jobs, key=attrgetter("arrival_s"))
        self.yard = Yard(
            cluster,
            self._decide,
            self.rules,
            speed=speed,
        )
        self.now_s = 0.0
        self._round_s = self.rules.round_s
        self._failures = iter(failures)
        self._progress = progress
        self._watcher = watcher
        self._heap: list[Entry] = []
        self._pushed = 0
        self._starts: dict[
            str, int
        ] = {}  # job -> number of its latest start; what belongs to older ones is void
        self._arrivals = [*(job.arrival_s for job in self.jobs), math.inf]
        self._next_arrival = 0
        self._round = -1  # the latest round that is on the heap
        self._recorder = Recorder()
        self._last_s = min(self.rules.until_s, sys.float_info.max)
        self._push_failure()

    def run(self) -> Result:
        """Simulate until every job is done, or until the given time."""
        began = perf_counter()
        with no_collection():
            return self._result(self._run(), perf_counter() - began)

    def _run(self) -> float:
        """Step through time; return when it ended."""
        while self.advance():
            self.decide()
        if self._unfinished() and math.isinf(self.rules.until_s):
            stuck, record = next(iter(self.yard.records.items()))
            asked, there = record.job.gpus, self.yard.cluster.gpus
            if asked > there:
                what = f"job {stuck} asks for {asked} GPUs; the cluster has {there}"
                raise InputError(f"{what}, and policy {self.policy.name} gives it no fewer: ask for less")
            raise TrainyardError(
                f"job {stuck} waits and nothing will ever happen: policy {self.policy.name} starves it"
            )
        return self.rules.until_s if self._unfinished() else self.now_s

    def _unfinished(self) -> bool:
        return len(self._recorder.ended) < len(self.jobs)

    def _next_time(self) -> float:
        arrival, heap = self._arrivals[self._next_arrival], self._heap
        return heap[0][0] if heap and heap[0][0] < arrival else arrival

    def advance(self) -> bool:
        """Go on to the next moment at which the policy has to decide; False if there is none any more."""
        jobs, ended, last_s = len(self.jobs), self._recorder.ended, self._last_s
        heap, handle = self._heap, self.yard.handle
        while len(ended) < jobs and (at := self._next_time()) <= last_s:
            self.now_s, due = at, False
            while heap and heap[0][0] == at and heap[0][1] < ARRIVAL:
                due |= self._happen(heappop(heap))
            while self._arrivals[self._next_arrival] == at:
                handle(JobSubmitted(at, self.jobs[self._next_arrival]))  # only a decision starts it
                self._next_arrival += 1
                due = True
            while heap and heap[0][0] == at:
                due |= self._happen(heappop(heap))
            if self._progress is not None:
                self._progress(len(ended))
            if due:
                if self._round_s is None or self._round_begins(at, self._round_s):
                    return True
                self._note_levels(at)
        return False

    def decide(self) -> None:
        """Ask the policy, and do what it says."""
        at, round_s = self.now_s, self._round_s
        if self._watcher is not None:
            self._watcher.deciding(self.yard.snapshot(at))
        if instructions := self.yard.handle(DecisionDue(at)):
            self._carry_out(instructions)
        # With no job running and nothing to come, another round would decide the same.
        if round_s is not None and (self.yard.target or self._next_time() < math.inf):
            self._plan_round(round(at / round_s) + 1, round_s)
        self._note_levels(at)

    def _note_levels(self, at: float) -> None:
        yard = self.yard
        running = len(yard.target)
        waiting, gpus = len(yard.records) - running, yard.up_gpus - yard.free.total
        self._recorder.levels.fromlist([at, waiting, running, gpus])

    @property
    def arrived(self) -> int:
        """Jobs that have come so far."""
        return self._next_arrival

    def finishes(self) -> tuple[Floats, Floats]:
        """Return when the jobs that are over ended, and when they came, in seconds."""
        came = {job.job_id: job.arrival_s for job in self.jobs[: self._next_arrival]}
        return self._recorder.finish_s(), np.array([came[job_id] for job_id in self._recorder.ended])

    def _happen(self, entry: Entry) -> bool:
        """Pass an event to the core; return whether a decision is due."""
        _, _, _, event, start = entry
        if isinstance(event, JobFinished):
            if self._starts.get(event.job_id) != start:
                return False
            del self._starts[event.job_id]
        elif isinstance(event, NodeFailed):
            self._push_failure()
        elif isinstance(event, DecisionDue):
            return True
        elif isinstance(event, Wake):
            return self._starts.get(event.job_id) == start
        self._carry_out(self.yard.handle(event))
        return True

    def _round_begins(self, at: float, round_s: float) -> bool:
        """Whether a round begins now; if not, see to it that the next one will be there."""
        rounds = at / round_s
        if abs(rounds - round(rounds)) < COUNT:
            return True
        self._plan_round(math.ceil(rounds), round_s)
        return False

    def _plan_round(self, number: int, round_s: float) -> None:
        if self._round < number and len(self.yard.table):
            self._round = number
            self._push(number * round_s, DECISION, DecisionDue(number * round_s))

    def _carry_out(self, instructions: list[Instruction]) -> None:
        """Do what the core says. Stops take no time here: their cost is charged at the next start."""
        for instruction in instructions:
            if isinstance(instruction, Ended):
                self._recorder.tell(instruction)
                if self._watcher is not None:
                    self._watcher.ended(instruction)
            elif isinstance(instruction, (Start, Retune)):
                job_id, finish_s = instruction.job_id, instruction.finish_s
                start = self._starts[job_id] = self._pushed
                status = self.yard.records[job_id].job.status
                outcome = OUTCOMES.get(status.lower(), DONE) if status else DONE
                self._push(finish_s, FINISH, JobFinished(finish_s, job_id, outcome), start)
            elif isinstance(instruction, Wake):
                if self._round_s is None:
                    start = self._starts[instruction.job_id]
                    self._push(instruction.time_s, DECISION, instruction, start)
            else:
                self._starts.pop(instruction.job_id, None)
                if isinstance(instruction, Stop):
                    self._carry_out(self.yard.handle(JobStopped(self.now_s, instruction.job_id)))

    def _push(self, at: float, priority: int, event: Event | Wake, start: int = 0) -> None:
        heappush(self._heap, (at, priority, self._pushed, event, start))
        self._pushed += 1

    def _push_failure(self) -> None:
        failure = next(self._failures, None)
        if failure is not None:
            self._push(failure.time_s, NODE, NodeFailed(failure.time_s, failure.node))
            back = failure.time_s + failure.repair_s
            self._push(back, NODE, NodeRepaired(back, failure.node))

    def _result(self, end_s: float, wall_s: float) -> Result:
        if self._unfinished():
            for job in self.jobs:
                if job.job_id not in self._recorder.ended:
                    self._recorder.tell(so_far(job, self.yard, end_s))
        return Result(
            self.policy.name,
            self.yard.cluster,
            self._recorder.outcomes(self.jobs),
            self._recorder.timeline(),
            self.yard.story,
            np.array(self._decide.spent_s) * 1e3,
            wall_s,
            end_s,
            self._decide.left_to,
        )
