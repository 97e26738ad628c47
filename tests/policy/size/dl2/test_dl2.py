"""The dl2 size stage, which needs no PyTorch: weights files, decisions, fallbacks, wrong input."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from learn_cases import CLUSTER, on_testbed, ring
from trainyard.errors import InputError
from trainyard.files.safetensors import load_tensors, save_tensors
from trainyard.learn.episode import Episode
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2 import stage
from trainyard.policy.size.dl2.slot import STOP, Slots
from trainyard.policy.size.dl2.weights import load_weights, save_weights, shipped
from trainyard.sim.clock import Simulator


def moment(scenario=on_testbed, number=1, slots=3):
    """A snapshot some slots into an episode, and who is ranked; None if it is over by then."""
    episode = Episode(0, scenario(number), Policy("dl2"))
    opened = episode.open()
    for _ in range(slots):
        if opened is None:
            return None
        ones = np.ones(opened[1].size, dtype=np.int64)
        episode.close(opened[1], stage.Shapes(ones, ones.copy()))
        opened = episode.open()
    return opened


def test_arrays_and_texts_come_back_from_a_file(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, -1], dtype=np.int64)}
    save_tensors(tmp_path / "x.safetensors", arrays, {"command": "train ä", "seed": "0"})
    found, texts = load_tensors(tmp_path / "x.safetensors")
    assert texts == {"command": "train ä", "seed": "0"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize(
    "data", [b"", b"1234567", b"\xff" * 100, b"\x02" + b"\0" * 7 + b"[]", b"\x02" + b"\0" * 7 + b"{}"]
)
def test_what_is_not_a_weights_file_is_refused_in_one_line(tmp_path, data):
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.safetensors.*'trainyard train'"):
        parse_policy(f"dl2(weights={path})")


def test_a_truncated_weights_file_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(shipped()["paper"].read_bytes()[:-5])
    with pytest.raises(InputError, match="not a whole safetensors file"):
        parse_policy(f"dl2(weights={path})")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dl2(weights=papre)", "did you mean 'paper'"),
        ("dl2(weights=none/there.safetensors)", "no such file"),
        ("dl2(draw=best,fallback=fifo)", "not one of drf, lookahead, optimus"),
        ("dl2(weights=)", "write name=value"),
    ],
)
def test_wrong_parameters_are_refused(text, said):
    with pytest.raises(InputError, match=said):
        parse_policy(text)


def test_shipped_weights_say_how_they_were_made():
    for name in shipped():
        made = load_weights(name).made
        assert {"command", "seed", "held_out_jct_slots"} <= set(made)
        assert made["command"].startswith("trainyard train dl2")


def test_weights_by_path_are_those_by_name(tmp_path):
    weights = load_weights("paper")
    save_weights(tmp_path / "own.safetensors", weights)
    assert (tmp_path / "own.safetensors").read_bytes() == shipped()["paper"].read_bytes()
    snapshot, ranked = moment()
    one, other = (
        parse_policy(text).size.shapes(snapshot, ranked).shapes
        for text in ("dl2", f"dl2(weights={tmp_path / 'own.safetensors'})")
    )
    np.testing.assert_array_equal(one.gpus, other.gpus)
    np.testing.assert_array_equal(one.servers, other.servers)


@pytest.mark.parametrize("draw", ["sample", "best"])
def test_the_same_snapshot_and_seed_give_the_same_sizes(draw):
    snapshot, ranked = moment()
    policy = parse_policy(f"dl2(draw={draw})")
    found = [policy.size.shapes(snapshot, ranked).shapes.servers.tolist() for _ in range(3)]
    assert found[0] == found[1] == found[2]
    seeds = {
        tuple(policy.size.shapes(replace_seed(snapshot, seed), ranked).shapes.servers) for seed in range(20)
    }
    assert (len(seeds) > 1) == (draw == "sample")


def replace_seed(snapshot, seed):
    twin = snapshot.fork()
    twin.rules = replace(twin.rules, seed=seed)
    return twin


@given(number=st.integers(0, 200), slots=st.integers(0, 6), at_once=st.sampled_from([1, 2, 100]))
@settings(max_examples=15, deadline=None)
def test_sizes_are_within_limits_and_capacity(number, slots, at_once):
    opened = moment(number=number, slots=slots)
    assume(opened is not None)
    snapshot, ranked = opened
    book = Slots(1, load_weights("paper").features())
    book.open(0, snapshot, ranked, 300.0)
    kept, stage.AT_ONCE = stage.AT_ONCE, at_once
    try:
        stage.decide(book, load_weights("paper"), np.random.default_rng(number))
    finally:
        stage.AT_ONCE = kept
    sizes = book.shapes(0)
    jobs = [snapshot.table.jobs[row] for row in ranked]
    assert all(
        gpus in (0, *range(job.least_gpus, job.most_gpus + 1))
        for job, gpus in zip(jobs, sizes.gpus, strict=True)
    )
    assert ((sizes.gpus > 0) == (sizes.servers > 0)).all()
    assert (book.room[0] >= 0).all()
    tasks = sizes.gpus + sizes.servers
    assert 2 * tasks.sum() <= CLUSTER.nodes[0].cpus * len(CLUSTER.nodes)


def test_a_whole_run_is_valid_and_repeatable():
    scenario = on_testbed(4)
    runs = [
        Simulator(scenario.cluster, scenario.jobs, parse_policy("dl2"), Rules(round_s=300.0)).run()
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].outcomes.jct_s, runs[1].outcomes.jct_s)
    assert np.isfinite(runs[0].outcomes.jct_s).all()


@pytest.mark.parametrize("fallback", ["drf", "lookahead"])
def test_another_stage_decides_where_jobs_are_unlike_those_in_training(fallback):
    snapshot, ranked = moment(ring, slots=0)  # all-reduce jobs, and the weights only know parameter servers
    chosen = parse_policy(f"dl2(weights=paper,fallback={fallback})").size.shapes(snapshot, ranked)
    told = parse_policy(fallback).size.shapes(snapshot, ranked)
    np.testing.assert_array_equal(chosen.shapes.gpus, told.shapes.gpus)
    assert chosen.notes["dl2"].startswith(f"{fallback} decided: ")
    assert "has servers of its own" in chosen.notes["dl2"]


def test_it_says_so_in_the_plan():
    scenario = ring(0)
    policy = parse_policy("dl2(weights=paper)")
    simulator = Simulator(scenario.cluster, scenario.jobs, policy, Rules(round_s=scenario.slot_s))
    simulator.advance()
    assert "drf decided" in policy.decide(simulator.yard.snapshot(simulator.now_s)).notes["dl2"]


def test_nothing_is_said_where_the_network_decides():
    snapshot, ranked = moment()
    assert not parse_policy("dl2").size.shapes(snapshot, ranked).notes


def test_several_actions_at_once_are_the_best_of_different_jobs_up_to_stop():
    scores = np.array([0.5, 3.0, 1.0, -np.inf, 2.0, 0.1, 0.2, 0.4, 0.3, 0.0, -np.inf, -np.inf, -np.inf])
    assert stage._best(scores, 1).tolist() == [1]
    assert stage._best(scores, 3).tolist() == [1, 4]  # the third job's best is behind stop
    scores[0] = 9.0
    assert stage._best(scores, 1).tolist() == stage._best(scores, 3).tolist() == []
    assert STOP == 0


def test_a_policy_that_was_used_can_be_sent_to_another_process():
    snapshot, ranked = moment()
    policy = parse_policy("dl2")
    before = policy.size.shapes(snapshot, ranked).shapes
    after = pickle.loads(pickle.dumps(policy)).size.shapes(snapshot, ranked).shapes
    np.testing.assert_array_equal(before.servers, after.servers)


def test_no_jobs_no_sizes():
    snapshot, ranked = moment()
    assert parse_policy("dl2").size.shapes(snapshot, ranked[:0]).shapes.gpus.size == 0


def test_a_resize_that_costs_more_than_it_brings_is_not_done():
    scenario = on_testbed(3)
    free, costly = (
        Simulator(
            scenario.cluster, scenario.jobs, parse_policy("dl2"), Rules(round_s=300.0, restart_s=s)
        ).run()
        for s in (0.0, 5.0)
    )
    assert costly.summary()["restarts"] < free.summary()["restarts"]


def test_weights_of_another_version_are_refused(tmp_path):
    weights, path = load_weights("paper"), tmp_path / "old.safetensors"
    save_weights(path, replace(weights, low=weights.low[1:], high=weights.high[1:]))
    with pytest.raises(InputError, match="made by another version: 29 numbers of a job instead of 30"):
        load_weights(str(path))
