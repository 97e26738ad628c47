"""How long may a run be? One without an end in sight is refused, with what would give it one."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.model.limits import MOST_FAILURES, MOST_ROUNDS
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.policy import Policy


def check_length(jobs: Sequence[Job], policy: Policy, rules: Rules, speed: SpeedModel) -> None:
    """Refuse a run whose longest job alone would take too many rounds."""
    stages = (policy.order, policy.size, policy.place, policy.tune)
    round_s = min(stage.period_s for stage in stages) if rules.round_s is None else rules.round_s
    most_s = MOST_ROUNDS * round_s
    if rules.until_s <= most_s:
        return
    for job in jobs:
        run_s = speed.ideal_s(job) * job.gpus / job.most_gpus
        if run_s > most_s:
            rounds = f"{run_s / round_s:.3g} rounds of {round_s:g} s"
            right = f"make rounds longer or give --until-s, so that there are at most {MOST_ROUNDS:g}"
            raise InputError(f"job '{job.job_id}' runs for {run_s:g} s, which is {rounds}; {right}")


class FailureCount:
    """Counts node failures; if too many come between the ends of two jobs, none would ever end."""

    def __init__(self) -> None:
        self.nodes = 0  # that went down
        self.runs = 0  # that were lost with them
        self._count = self._ended = 0

    def tell(self, ended: int) -> None:
        """Count one more, when so many jobs are over."""
        if ended != self._ended:
            self._count, self._ended = 0, ended
        self._count += 1
        if self._count > MOST_FAILURES:
            what = f"nodes failed {MOST_FAILURES:,} times and no job ended meanwhile"
            raise InputError(f"{what}; let nodes fail less often, repair them sooner, or give --until-s")
