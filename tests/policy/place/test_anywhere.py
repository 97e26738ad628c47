"""The smallest size of a job wherever it fits: types mixed, and the server on any node."""

from __future__ import annotations

import pytest

from conftest import APART
from policy_cases import nodes_of, two_types
from trainyard.model.allocation import Share
from trainyard.model.cluster import NodeTable
from trainyard.model.job import Job
from trainyard.policy.place.anywhere import anywhere
from trainyard.state.room import Room

# A worker takes 1 CPU and 8 GB, a server half a CPU and 4 GB.
SERVED = Job("a", 0.0, 4, samples=1e6, profile=APART, min_gpus=2, max_gpus=4)


def room(*free):
    """Nodes with (GPUs, CPUs, GB) free."""
    return Room(*(list(column) for column in zip(*free, strict=True)))


def test_gpu_types_are_mixed_unless_the_job_accepts_only_one():
    nodes = NodeTable(two_types(v100=2, k80=2))
    job, free = Job("a", 0.0, 4, duration_s=1.0, min_gpus=3), Room.all_of(nodes)
    request, found = anywhere(job, -1, free, nodes)
    assert (request.gpus, request.servers) == (3, 0)
    assert dict(found.workers) == {"k": 2, "v": 1}
    assert anywhere(job, 0, free, nodes) is None
    assert anywhere(job, 1, free, nodes) is None
    small = Job("a", 0.0, 2, duration_s=1.0)
    assert dict(anywhere(small, 1, free, nodes)[1].workers) == {"v": 2}


@pytest.mark.parametrize(
    ("free", "shares"),
    [
        ([(2, 2.5, 20.0), (0, 9.0, 90.0)], [Share("n0", 2, 1, 2.5, 20.0)]),
        ([(2, 2.0, 90.0), (0, 0.5, 4.0)], [Share("n0", 2, 0, 2.0, 16.0), Share("n1", 0, 1, 0.5, 4.0)]),
        ([(2, 9.0, 16.0), (0, 0.5, 4.0)], [Share("n0", 2, 0, 2.0, 16.0), Share("n1", 0, 1, 0.5, 4.0)]),
        (
            [(1, 1.0, 8.0), (1, 1.5, 12.0)],
            [Share("n0", 1, 0, 1.0, 8.0), Share("n1", 1, 1, 1.5, 12.0)],
        ),
        ([(0, 0.5, 4.0), (2, 2.0, 16.0)], [Share("n1", 2, 0, 2.0, 16.0), Share("n0", 0, 1, 0.5, 4.0)]),
    ],
)
def test_one_server_sits_where_it_leaves_room_for_the_workers(free, shares):
    nodes, left = NodeTable(nodes_of(4, 4)), room(*free)
    left.plain = False
    request, found = anywhere(SERVED, -1, left, nodes)
    assert (request.gpus, request.servers) == (2, 1)
    assert list(found.shares) == shares
    assert (left.gpus, left.cpus) == ([gpus for gpus, _, _ in free], [cpus for _, cpus, _ in free])


@pytest.mark.parametrize(
    "free",
    [
        [(2, 2.0, 90.0), (0, 0.4, 90.0)],
        [(2, 2.0, 90.0), (0, 9.0, 3.9)],
        [(2, 2.4, 90.0), (0, 0.4, 0.0)],
        [(1, 9.0, 90.0), (0, 9.0, 90.0)],
    ],
)
def test_there_is_no_room_for_the_workers_and_a_server(free):
    left = room(*free)
    left.plain = False
    assert anywhere(SERVED, -1, left, NodeTable(nodes_of(4, 4))) is None
