"""Jobs in line: the quick way to choose gives what walking down the whole ranking gives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.choose import lines as line
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.by_key import KeyOrder

ORDERS = (
    "srtf",
    "srsf",
    "las",
    "las(threshold_gpu_s=40:400)",
    "las(threshold_s=30)",
    "tiresias(threshold_gpu_s=60)",
)


# Jobs that are level with each other but for their submission, which is in the last bits of their keys.
LEVEL = [
    Job(f"j{i}", at, gpus, length)
    for i, (at, gpus, length) in enumerate(
        [(0.0, 2, 15.0), (0.0, 4, 8.0), (1.0, 4, 8.0), (0.0, 3, 8.0), (0.0, 4, 8.0)]
    )
]


class Walked(KeyOrder):
    """The same order, but keys of waiting jobs are not said to stay the same."""

    def __init__(self, order):
        self.order = order

    def key(self, snapshot):
        return self.order.key(snapshot)

    def wakes(self, snapshot, changes):
        return self.order.wakes(snapshot, changes)


@st.composite
def workloads(draw):
    numbers = st.tuples(st.integers(0, 60), st.sampled_from([1, 1, 1, 2, 3, 4, 8, 12]), st.integers(1, 300))
    rows = draw(st.lists(numbers, min_size=1, max_size=60))
    return [Job(f"j{i}", float(at), gpus, float(length)) for i, (at, gpus, length) in enumerate(rows)]


@pytest.mark.parametrize("name", ORDERS)
@settings(max_examples=25, deadline=None)
@example(jobs=LEVEL, round_s=7.0, restart_s=0.0, last=1)
@given(workloads(), st.sampled_from([None, 7.0]), st.sampled_from([0.0, 5.0]), st.sampled_from([1, 24]))
def test_in_line_or_walked_down_the_same_jobs_run(name, jobs, round_s, restart_s, last):
    policy = parse_policy(name)
    options = {"round_s": round_s, "restart_s": restart_s}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line, "LAST", last)
        quick = checked(uniform_cluster(3, 4), jobs, policy, **options)
    slow = checked(uniform_cluster(3, 4), jobs, replace(policy, order=Walked(policy.order)), **options)
    assert np.array_equal(quick.outcomes.finish_s, slow.outcomes.finish_s)
    assert np.array_equal(quick.outcomes.preemptions, slow.outcomes.preemptions)
