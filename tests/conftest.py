"""Helpers that several tests share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import settings

from trainyard.engine.failures import Failure
from trainyard.engine.result import Result
from trainyard.engine.simulator import Options, Simulator
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.pipeline import Policy

settings.register_profile("patient", deadline=None)  # a busy machine makes no test fail
settings.load_profile("patient")

SHARED = Path(__file__).resolve().parents[2] / "shared"
ORDERS = [  # with numbers that matter in small workloads
    "fifo",
    "fifo(fill=greedy)",
    "fifo(fill=easy)",
    "sjf",
    "sjf(fill=easy)",
    "srtf",
    "srsf",
    "las",
    "las(threshold_gpu_s=50:400)",
    "tiresias(threshold_gpu_s=100)",
    "ftf",
]


@pytest.fixture
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("../shared is not there")
    return SHARED


def checked(
    cluster: Cluster,
    jobs: Iterable[Job],
    policy: Policy | str = "fifo",
    failures: Iterable[Failure] = (),
    **options: float,
) -> Result:
    """Simulate, and recompute the yard's books from scratch after every event."""
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    simulator = Simulator(cluster, list(jobs), chosen, Options(**options), failures)
    handle = simulator.yard.handle

    def watched(event):
        instructions = handle(event)
        simulator.yard.validate()
        return instructions

    simulator.yard.handle = watched
    return simulator.run()


def finishes(result: Result) -> dict[str, float]:
    return dict(zip(result.outcomes.job_id, result.outcomes.finish_s.tolist(), strict=True))


def one_by_one(work, tasks, tell):
    """Stand in for `in_parallel`, in this process."""
    answers = {}
    for task in tasks:
        answers[task] = work(task)
        tell(len(answers))
    return answers
