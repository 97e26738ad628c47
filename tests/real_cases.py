"""A yard in a real cluster whose decisions the test takes; the books are looked at after every event."""

from __future__ import annotations

import json
from dataclasses import fields
from math import inf
from typing import Any

from trainyard.core.events import DecisionDue, JobStopped, JobSubmitted
from trainyard.core.instructions import DecideAt, Ignored
from trainyard.core.twins import state_of
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.terms import Terms

TERMS = {field.name for field in fields(Terms)}


def on(**gpus):
    """GPUs of nodes n0, n1, ... with their shares."""
    return Allocation(tuple(Share(f"GPU-{n[1:]}", g, 0, 3.0 * g, 62.5 * g) for n, g in gpus.items()))


def real(name="a", gpus=4, duration_s=100.0, **more):
    """A job with terms; it saves its work every 10 s."""
    terms = Terms(**{field: more.pop(field) for field in TERMS & set(more)})
    return Job(name, 0.0, gpus, duration_s, **{"checkpoint_s": 10.0, **more}, terms=terms)


class Real:
    """A yard of nodes GPU-0, GPU-1, ... with four GPUs each."""

    def __init__(self, *jobs, nodes=2, cluster=None, indices=False, remember=50, policies=None, **rules):
        self.plan, self.wake_s = Plan(), inf
        self.yard = Yard(
            cluster or uniform_cluster(nodes, 4),
            lambda _: self.plan,
            Rules(**rules),
            indices=indices,
            remember=remember,
            policies=policies,
        )
        for job in jobs:
            self.submit(job)

    def submit(self, job, now=0.0):
        return self.tell(JobSubmitted(now, job))

    def tell(self, event):
        """Return what has to be done, but for when to decide next: that is `wake_s`."""
        out = self.yard.handle(event)
        validate(self.yard)
        for i in out:
            if isinstance(i, DecideAt):
                self.wake_s = i.time_s
        return [i for i in out if not isinstance(i, DecideAt)]

    def decide(self, now, **changes):
        self.plan = Plan(changes)
        return self.tell(DecisionDue(now))

    def wait(self, now):
        """Let time go by."""
        return self.decide(now)

    def stopped(self, now, job_id, **more):
        return self.tell(JobStopped(now, job_id, **more))

    def why(self, event):
        """Return why an event is ignored; nothing else may come of it."""
        before = self.look()
        (ignored,) = self.tell(event)
        assert isinstance(ignored, Ignored)
        assert ignored.event is event
        assert self.look() == before
        return ignored.why

    def look(self) -> dict[str, Any]:
        """Everything the yard knows but the time."""
        state = json.loads(json.dumps(state_of(self.yard), allow_nan=False))
        del state["counts"]["now_s"]
        return state

    def record(self, job_id="a"):
        return self.yard.find(job_id) or self.yard.over.records[job_id]

    def state(self, job_id="a"):
        return self.record(job_id).state.value

    def reason(self, job_id="a"):
        trouble = self.record(job_id).trouble
        return trouble.code, trouble.text

    def waiting(self):
        return [record.job_id for record in self.yard.waiting]
