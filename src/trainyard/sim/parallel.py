"""Several policies over the same jobs, on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from multiprocessing.queues import SimpleQueue
from typing import Any

from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.sim.result import Result
from trainyard.sim.workers import Workers

REPORT_EVERY = 500  # finished jobs between two progress reports of a worker

Progress = Callable[[int, int], None]  # (policy, finished jobs)

_shared: dict[str, Any] = {}  # set once in every worker process: what all runs have in common


def run_all(
    cluster: Cluster,
    jobs: Sequence[Job],
    policies: Sequence[Policy],
    options: Rules | None = None,
    failures: Iterable[Failure] = (),
    progress: Progress | None = None,
) -> list[Result]:
    """Simulate every policy and return the results in the same order."""
    reports: SimpleQueue[tuple[int, int]] = multiprocessing.SimpleQueue()
    common = (cluster, jobs, options, failures, reports if progress else None)
    workers = min(len(policies), os.cpu_count() or 1)
    with Workers(workers, _share, common) as pool:
        futures = [pool.submit(_run, i, policy) for i, policy in enumerate(policies)]
        while progress and wait(futures, timeout=0.1).not_done:
            while not reports.empty():
                progress(*reports.get())
        return [future.result() for future in futures]


def _share(*common: object) -> None:
    _shared.update(zip(("cluster", "jobs", "options", "failures", "reports"), common, strict=True))


def _run(index: int, policy: Policy) -> Result:
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        if done - told >= REPORT_EVERY:
            _shared["reports"].put((index, done))
            told = done

    report = tell if _shared["reports"] is not None else None
    jobs, options, failures = _shared["jobs"], _shared["options"], _shared["failures"]
    return Simulator(_shared["cluster"], jobs, policy, options, failures, report).run()
