"""Why a job waits: every sentence once, from a state that calls for it."""

from __future__ import annotations

import pytest

from policy_cases import nodes_of, snapshot_of, two_types
from trainyard.model.job import Job
from trainyard.policy.choose.reasons import waiting_reasons
from trainyard.policy.grammar import parse_policy


def job(name, gpus, **more):
    return Job(name, 0.0, gpus, duration_s=100.0, **more)


def reasons(policy, cluster, jobs, held=None):
    return waiting_reasons(snapshot_of(cluster, jobs, held), parse_policy(policy))


RUNS, HELD = job("runs", 3), {"runs": {"n0": 3}}


def test_too_few_are_free():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 4), job("next", 2)], HELD)
    assert told == {
        "head": "needs 4 GPUs; 1 are free",
        "next": "needs 2 GPUs; 1 are free, and 1 jobs come first",
    }


def test_a_single_gpu_is_named_so():
    told = reasons("fifo", nodes_of(3), [RUNS, job("one", 1)], HELD)
    assert told == {"one": "needs 1 GPU; 0 are free"}


def test_gpus_of_a_type_are_counted_by_type():
    jobs = [job("runs", 1), job("fast", 2, gpu_type="V100"), job("slow", 3, gpu_type="K80")]
    told = reasons("fifo", two_types(2, 2), jobs, {"runs": {"v": 1}})
    assert told["fast"] == "needs 2 V100 GPUs; 1 are free"
    assert told["slow"] == "needs 3 K80 GPUs; 2 are free, and 1 jobs come first"


def test_who_stands_behind_the_head_of_a_strict_order():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 2), job("small", 1)], HELD)
    assert told["small"] == "waits behind head: the order is strict"


def test_who_would_delay_the_head():
    told = reasons("fifo(fill=easy)", nodes_of(4), [RUNS, job("head", 2), job("small", 1)], HELD)
    assert told["small"] == "would delay head, which comes first"


def test_what_a_size_stage_says():
    told = reasons("fifo(fill=greedy)+smd", nodes_of(4), [job("a", 1)])
    assert told["a"].startswith("is not admitted: ")


@pytest.mark.parametrize(
    ("policy", "more"), [("fifo", {"cpus": 30.0}), ("fifo+greedy", {}), ("fifo", {"memory_gb": 1e4})]
)
def test_gpus_without_their_cpus_and_memory(policy, more):
    told = reasons(policy, nodes_of(4), [job("a", 2, **more)])
    assert told == {"a": "needs 2 GPUs; 4 are free, but not with the CPUs and memory that it needs"}


def test_gpus_in_the_wrong_place():
    jobs = [job("r0", 1), job("r1", 1), job("a", 2)]
    told = reasons("fifo+pack(consolidate=require)", nodes_of(2, 2), jobs, {"r0": {"n0": 1}, "r1": {"n1": 1}})
    assert told == {"a": "needs 2 GPUs; 2 are free, but not where it could use them"}


def test_exactly_as_many_as_are_free_are_enough():
    told = reasons("fifo", nodes_of(4), [RUNS, job("head", 1)], HELD)
    assert told == {"head": "needs 1 GPU; 1 are free, but not where it could use them"}


def test_an_elastic_job_needs_its_fewest_where_sizes_are_chosen():
    jobs = [job("runs", 3), job("a", 4, min_gpus=2, max_gpus=8)]
    assert reasons("srtf", nodes_of(4), jobs, HELD)["a"] == "needs 4 GPUs; 1 are free"
    assert reasons("srtf+drf", nodes_of(4), jobs, HELD)["a"] == "needs 2 GPUs; 1 are free"


def test_a_preemptive_order_is_never_called_strict():
    jobs = [RUNS, job("a", 2), job("b", 1)]
    told = reasons("srsf", nodes_of(4), jobs, HELD)
    assert list(told) == ["b", "a"]  # in the order in which they would be served
    assert told["a"] == "needs 2 GPUs; 1 are free, and 1 jobs come first"
    assert "strict" not in told["b"]
