"""What has to be done outside: members by rank, parts of the batch, learning rates, shares, graces."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainyard.core.instructions import DecideAt, Fence, Kill, Retune, Start, Stop
from trainyard.core.yard import Yard
from trainyard.live.backends.base import Member, RunKey, Shares
from trainyard.live.intents import Intent, batch_shares, intent_of, lr_scale, run_spec
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.zoo import ZOO
from trainyard.policy.grammar import parse_policy

FAST, SLOW = Node("fast", "A100", 4, 32.0, 400.0), Node("slow", "K80", 4, 16.0, 200.0)
CLUSTER = Cluster("two", (FAST, SLOW), {"A100": GpuType("A100", 4.0), "K80": GpuType("K80", 1.0)})
MIXED = Allocation((Share("slow", 2, 0, 8.0, 100.0), Share("fast", 1, 1, 8.0, 100.0)))


@pytest.fixture
def yard():
    made = Yard(CLUSTER, parse_policy("fifo").decide, indices=True)
    made.submit(0.0, Job("a", 0.0, 2, 100.0))
    return made


def test_a_job_without_a_profile_gives_faster_gpus_a_larger_part(yard):
    assert batch_shares(yard, Job("a", 0.0, 3, 10.0), MIXED) == pytest.approx([1 / 6, 1 / 6, 4 / 6])


def test_a_profile_says_how_a_batch_is_split_and_all_parts_are_whole_samples(yard):
    profile = ZOO["resnet50"].profile
    job = Job("a", 0.0, 3, 10.0, model="resnet50", profile=profile)
    parts = batch_shares(yard, job, MIXED)
    split = yard.model.batch_split(job, MIXED)
    batch = sum(map(sum, split.values()))
    assert parts == [n / batch for n in (*split["slow"], *split["fast"])]  # by rank: as the nodes are listed
    assert parts[2] > parts[0] >= parts[1] > 0
    assert sum(parts) == pytest.approx(1.0)


def test_nodes_with_servers_only_have_no_part(yard):
    apart = Allocation((Share("fast", 0, 2, 4.0, 50.0), Share("slow", 2, 0, 8.0, 100.0)))
    for job in (Job("a", 0.0, 2, 10.0), Job("a", 0.0, 2, 10.0, profile=ZOO["resnet50"].profile)):
        assert batch_shares(yard, job, apart) == [0.5, 0.5]


def test_the_learning_rate_grows_with_the_batch_and_only_with_it():
    weak = replace(ZOO["resnet50"].profile, scaling="weak")
    strong = replace(weak, scaling="strong")
    assert lr_scale(Job("a", 0.0, 2, 10.0), 8) == 4.0
    assert lr_scale(Job("a", 0.0, 4, 10.0, profile=weak), 2) == 0.5  # beside what was asked for, absolutely
    assert lr_scale(Job("a", 0.0, 4, 10.0, profile=strong), 2) == 1.0


def test_a_start_says_where_everybody_is_and_survives_the_store(yard):
    start = Start("a", MIXED, 1.0, 9.0, 1.0, 3, {"slow": (1, 3), "fast": (2,)})
    intent = intent_of(yard, start, 7, 0, 5.0)
    assert intent.key == RunKey("a", 3)
    stored = intent._replace(record=json.loads(json.dumps(intent.record)))
    assert stored == intent
    run = run_spec(stored, {"command": ["true"]})
    assert run.members == (
        Member("slow", (1, 3), 0, Shares(8.0, 100.0), 0, 0),
        Member("fast", (2,), 1, Shares(8.0, 100.0), 2, 0),
    )
    assert (run.workers, run.servers, run.lr_scale) == (3, 1, 1.5)
    assert len(run.batch_shares) == run.workers


def test_ranks_and_servers_count_up_over_nodes():
    members = [["n0", [0, 1], 2, 1.0, 1.0], ["n1", [], 1, 1.0, 1.0], ["n2", [0], 0, 1.0, 1.0]]
    record = {"members": members, "batch_shares": [0.5, 0.25, 0.25], "lr_scale": 1.0}
    run = run_spec(Intent(1, 0, "start", "a", 1, record), {})
    assert [(m.first_rank, m.first_server) for m in run.members] == [(0, 0), (2, 2), (2, 3)]


@pytest.mark.parametrize(
    ("instruction", "kind", "record"),
    [
        (Stop("a", 2), "stop", {"grace_s": 5.0}),
        (Kill("a", 2), "kill", {}),
        (Fence("fast"), "fence", {"node": "fast"}),
        (
            Retune("a", MIXED, 1.0, 9.0, 2),
            "retune",
            {"shares": {"slow": [8.0, 100.0], "fast": [8.0, 100.0]}},
        ),
    ],
)
def test_other_instructions_say_what_they_need(yard, instruction, kind, record):
    intent = intent_of(yard, instruction, 7, 1, 5.0)
    assert (intent.kind, intent.record) == (kind, record)
    assert (intent.seq, intent.n) == (7, 1)
    if kind != "fence":
        assert intent.key == RunKey("a", 2)


def test_what_concerns_nobody_outside_is_no_intent(yard):
    assert intent_of(yard, DecideAt(5.0), 7, 0, 0.0) is None
