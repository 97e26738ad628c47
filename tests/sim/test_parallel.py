"""Several policies at once, each in a process of its own: what comes back is what each gives alone."""

from __future__ import annotations

import trainyard as ty

CLUSTER = ty.uniform_cluster(nodes=2, gpus=4, gpu_type="V100")
JOBS = [ty.Job("big", 0.0, 8, 3600.0), ty.Job("small", 60.0, 1, 300.0), ty.Job("late", 70.0, 4, 100.0)]
POLICIES = ["fifo", "srtf", "las"]


def test_results_come_whole_and_in_the_order_of_the_policies():
    results = ty.compare(CLUSTER, JOBS, POLICIES, restart_s=30.0)
    assert [result.policy for result in results] == POLICIES
    for result in results:
        alone = ty.simulate(CLUSTER, JOBS, result.policy, restart_s=30.0)
        assert list(map(str, result.story)) == list(map(str, alone.story))
        assert result.outcomes.finish_s.tolist() == alone.outcomes.finish_s.tolist()
