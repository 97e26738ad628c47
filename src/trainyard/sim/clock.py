"""The simulator: a clock and a heap around the core."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np

from trainyard.core.instructions import DECIDE_AT, ENDED, FENCE, KILL, RETUNE, STOP, ended
from trainyard.core.progress import note_checkpoint, settle
from trainyard.core.real.due import fire
from trainyard.core.real.leaving import gone
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
from trainyard.sim.impossible import why_never
from trainyard.sim.length import FailureCount, check_length
from trainyard.sim.recorder import Recorder, TimedPolicy
from trainyard.sim.result import Result
from trainyard.sim.truth import Named, Truth, hidden, require_work
from trainyard.state.lifecycle import State
from trainyard.state.queue import by_seq
from trainyard.state.record import Record

# At equal times: completions free room, nodes come and go, jobs arrive, and then the policy is asked.
FINISH, NODE, ARRIVAL, WAKE, ROUND = range(5)

# (time, priority, sequence, whom it is about, number of the run or of the wish that it belongs to)
Entry = tuple[float, int, int, Any, int]
NEVER: Entry = (math.inf, ROUND, 0, None, 0)  # the last of the heap, so that there always is a first one

# How a job ends that the trace says ended so; any other ends well.
DONE = State.DONE
OUTCOMES = {
    **dict.fromkeys(("failed", "fail", "error", "timeout", "node_fail"), State.FAILED),
    **dict.fromkeys(("cancelled", "canceled", "killed"), State.CANCELLED),
}


VOID = 1000  # so many may stay there


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
        self._timed = TimedPolicy(policy)
        self.jobs = sorted(jobs, key=attrgetter("arrival_s"))
        self.yard = Yard(
            cluster,
            self._timed.decide,
            self.rules,
            speed=speed,
            half_life_s=policy.order.half_life_s,
        )
        require_work(self.jobs)
        unknown = self.rules.unknown_durations
        self._truth: Truth | None = Truth(self.jobs, self.yard.speed) if unknown else None
        self._shown = [hidden(job) for job in self.jobs] if unknown else self.jobs  # what the core is told
        if not unknown:
            self.yard.lengths.history = None
        self.now_s = 0.0
        self._round_s = self.rules.round_s
        self._failures = iter(failures)
        self._failed = FailureCount()
        self._outages: Counter[str] = Counter()  # failures of a node that are not repaired yet
        self._cluster = cluster
        self._progress = progress
        self._watcher = watcher
        self._heap: list[Entry] = [NEVER]
        self._void = 0  # entries of runs that were stopped, about
        self._pushed = 0
        self._wake = 0  # number of the policy's latest wish to be asked again
        self._arrivals = [*(job.arrival_s for job in self.jobs), math.inf]
        self._next_arrival = 0
        self._round = -1  # the latest round that is on the heap
        self._recorder = Recorder()
        self._levels = self._recorder.levels.extend
        self._last_s = min(self.rules.until_s, sys.float_info.max)
        self._push_failure()
        for at in sorted({t for r in cluster.reservations for t in (r.from_s, r.to_s)}):
            self._push(at, NODE, None)
        self._moments = self._steps()

    @classmethod
    def resume(
        cls,
        yard: Yard,
        policy: Policy,
        now_s: float,
        arrivals: Sequence[Job] = (),
        truth: Mapping[str, float] | None = None,
    ) -> Simulator:
        """Go on from a moment of a yard, which is taken over (fork it to keep it), with jobs still to come.

        `truth` is the samples of jobs in all, where these are not as the yard believes. What was told to stop
        or to end is gone at once.
        """
        self = cls(yard.cluster, arrivals, policy, yard.rules)
        self._cluster = replace(yard.cluster, reservations=tuple(yard.conditions.reservations.values()))
        active = sorted((*yard.table.records, *yard.parked.values()), key=by_seq)
        self.yard, self.now_s, yard.decider = yard, now_s, self._timed.decide
        self._truth = Named(truth or {})
        self._shown = self.jobs = [*(record.job for record in active), *self.jobs]
        self._arrivals[:0] = [record.arrival_s for record in active]
        self._next_arrival = len(active)
        come = range(len(active), len(self.jobs))
        self._recorder.places = {record.seq: i for i, record in enumerate(active)} | {
            yard.seq + 1 + k: i for k, i in enumerate(come)
        }
        self._take_up(active)
        self._moments = self._steps()
        return self

    def _take_up(self, active: Sequence[Record]) -> None:
        """Go on with what runs, see the end of what leaves, and ask the policy at once."""
        yard, at, self.yard.out = self.yard, self.now_s, []
        for record in active:
            if record.state in (State.STOPPING, State.KILLING):
                gone(yard, record, at, "gone when the simulation began")
            elif record.state is State.RUNNING:
                note_checkpoint(record, at)
                settle(record, at)
                yard.note(record)
                assert self._truth is not None
                self._pushed += 1
                finish_s = max(self._truth.finish_s(record), at)
                heappush(self._heap, (finish_s, FINISH, self._pushed, record, record.start))
        self._carry_out()
        self._wake += 1
        self._push(at, WAKE, None, self._wake)

    def run(self) -> Result:
        """Simulate until every job is done, or until the given time."""
        began = perf_counter()
        with no_collection():
            return self._result(self._run(), perf_counter() - began)

    def _run(self) -> float:
        """Step through time; return when it ended."""
        self._check()
        decide = self.decide
        for _ in self._moments:
            decide()
        if self._unfinished() and math.isinf(self.rules.until_s):
            stuck, record = next(iter(self.yard.records.items()))
            why = why_never(self.yard.cluster, record.job, self.policy, self.rules)
            if why:
                what = f"job {stuck} can never run by policy {self.policy.name}, even alone: {why}"
                raise InputError(f"{what}; ask for less, or take another policy")
            raise TrainyardError(
                f"job {stuck} waits and nothing will ever happen: policy {self.policy.name} starves it"
            )
        return self.rules.until_s if self._unfinished() else self.now_s

    def _check(self) -> None:
        """Refuse what would never end."""
        if isinstance(self.policy, Policy):  # others decide without stages
            check_length(self.jobs, self.policy, self.rules, self.yard.speed)

    def _unfinished(self) -> bool:
        return self._recorder.ended < len(self.jobs)

    def _next_time(self) -> float:
        return min(self._arrivals[self._next_arrival], self._heap[0][0])

    def advance(self) -> bool:
        """Go on to the next moment at which the policy has to decide; False if there is none any more."""
        due = next(self._moments, False)
        self._carry_out()  # as far as events before the decision say
        return due

    def _steps(self) -> Iterator[bool]:
        """Step through time, and stop at every moment at which the policy has to decide."""
        jobs, recorder, last_s, round_s = len(self.jobs), self._recorder, self._last_s, self._round_s
        heap, arrival_s, progress = self._heap, self._arrivals[self._next_arrival], self._progress
        finish = self.yard.finish
        while recorder.ended < jobs:
            entry, due = heap[0], False
            at = entry[0]
            if arrival_s < at:
                at = arrival_s
            self.now_s = at
            if at > last_s:
                return
            while entry[0] == at and entry[1] < ARRIVAL:
                _, what, _, who, run = heappop(heap)
                if what == NODE:
                    self._node_changes(at, who)
                    due = True
                elif who.start == run:  # else it was stopped meanwhile
                    status = who.job.status
                    finish(at, who, OUTCOMES.get(status.lower(), DONE) if status else DONE)
                    due = True
                entry = heap[0]
            if arrival_s == at:
                arrival_s = self._arrive(at)
                due = True
            while entry[0] == at:
                heappop(heap)
                due |= entry[1] == ROUND or entry[4] == self._wake
                entry = heap[0]
            if progress is not None:
                self._carry_out()
                progress(recorder.ended)
            if due:
                if round_s is None or self._round_begins(at, round_s):
                    yield True
                else:
                    self._carry_out()
                    self._note_levels(at)

    def _arrive(self, at: float) -> float:
        """Hand in all jobs that come now, which only a decision starts; return when the next comes."""
        i, submit = self._next_arrival, self.yard.submit
        while True:
            submit(at, self._shown[i])
            i += 1
            arrival_s = self._arrivals[i]
            if arrival_s != at:
                self._next_arrival = i
                return arrival_s

    def decide(self) -> None:
        """Ask the policy, and do what it says."""
        at, yard = self.now_s, self.yard
        if self._watcher is not None:
            self._carry_out()  # it is to know of all that happened before
            self._watcher.deciding(yard.snapshot(at))
        yard.decide(at)
        if yard.out:
            self._carry_out()
        running = len(yard.target)
        # With no job running and nothing to come, another round would decide the same.
        if self._round_s is not None and (running or self._next_time() < math.inf):
            self._plan_round(round(at / self._round_s) + 1, self._round_s)
        self._levels((at, len(yard.records) - running, running, yard.up_gpus - yard.free.total))

    def _note_levels(self, at: float) -> None:
        yard = self.yard
        running, gpus = len(yard.target), yard.up_gpus - yard.free.total
        self._levels((at, len(yard.records) - running, running, gpus))

    @property
    def arrived(self) -> int:
        """Jobs that have come so far."""
        return self._next_arrival

    def finishes(self) -> tuple[Floats, Floats]:
        """Return when the jobs that are over ended, and when they came, in seconds."""
        finish_s, who = self._recorder.finishes()
        return finish_s, np.array(self._arrivals)[who]

    def _node_changes(self, at: float, who: Failure | str | None) -> None:
        """A node fails, or is back, or a reservation begins or ends."""
        if who is None:
            fire(self.yard, at)
            self._end_at_once(at)
        elif isinstance(who, Failure):
            self._push_failure()
            self._failed.tell(self._recorder.ended)
            self._outages[who.node] += 1
            if who.node not in self.yard.conditions.down:
                self._failed.nodes += 1
                self.yard.node_failed(at, who.node)
                self._failed.runs += self._end_at_once(at)
        else:
            self._outages[who] -= 1
            if not self._outages[who]:  # it may have failed once more meanwhile
                self.yard.node_repaired(at, who)

    def _end_at_once(self, at: float) -> int:
        """Kills take no time here, nor do stops for a reservation; return how many runs were killed."""
        todo, self.yard.out, killed = self.yard.out, [], 0
        for do in todo:
            if do[0] == KILL or do[0] == STOP:
                killed += do[0] == KILL
                gone(self.yard, do[1], at, "gone at once" if do[0] == KILL else "stopped and saved")
            elif do[0] != FENCE:
                self.yard.out.append(do)
        return killed

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
            self._push(number * round_s, ROUND, None)

    def _carry_out(self) -> None:
        """Do what the core says. Stops take no time here: their cost is charged at the next start."""
        yard, truth = self.yard, self._truth
        todo, yard.out = yard.out, []
        stopped: list[Record] = []
        for do in todo:
            what, record = do[0], do[1]
            if what <= RETUNE:  # or START
                self._pushed = pushed = self._pushed + 1
                finish_s = do[4] if truth is None else truth.finish_s(record)
                heappush(self._heap, (finish_s, FINISH, pushed, record, record.start))
            elif what == ENDED:
                fair_s = do[4] if truth is None else truth.reveal(record, do[4])
                self._recorder.tell(record, do[2], do[3], fair_s)
                if self._watcher is not None:
                    self._watcher.ended(ended(*do[1:]))
            elif what == DECIDE_AT:
                self._wake += 1
                if self._round_s is None and do[2] < math.inf:
                    self._push(do[2], WAKE, None, self._wake)
            elif what == STOP:
                if record.trouble is None or record.trouble.ending is None:
                    stopped.append(record)
                else:  # it was told to stop by more than a plan
                    gone(yard, record, self.now_s, "stopped and saved")
        if stopped:
            yard.stopped(self.now_s, stopped)
            self._void += len(stopped)
            if self._void > VOID and 2 * self._void > len(self._heap):
                self._clear_heap()
            if yard.out:
                self._carry_out()

    def _clear_heap(self) -> None:
        """Take out the ends of runs that were stopped: most of the heap, if jobs take turns."""
        self._heap[:] = [e for e in self._heap if not isinstance(e[3], Record) or e[3].start == e[4]]
        heapify(self._heap)
        self._void = 0

    def _push(self, at: float, what: int, who: Failure | str | None, run: int = 0) -> None:
        self._pushed += 1
        heappush(self._heap, (at, what, self._pushed, who, run))

    def _push_failure(self) -> None:
        failure = next(self._failures, None)
        if failure is not None:
            self._push(failure.time_s, NODE, failure)
            self._push(failure.time_s + failure.repair_s, NODE, failure.node)

    def _result(self, end_s: float, wall_s: float) -> Result:
        if self._unfinished():
            for record in self.yard.table.records:
                if self._truth is not None:
                    self._truth.reveal(record)
                self._recorder.tell_so_far(record, end_s)
        return Result(
            self.policy.name,
            self._cluster,
            self._recorder.outcomes(self.jobs),
            self._recorder.timeline(),
            self.yard.story,
            np.array(self._timed.spent_s) * 1e3,
            wall_s,
            end_s,
            self._timed.left_to,
            len(self._timed.rescues),
            self._failed.nodes,
            self._failed.runs,
        )
