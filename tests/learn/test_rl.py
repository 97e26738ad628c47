"""Reinforcement learning: advantages by hand, switches, exact seeds, resumption; and the warm-up before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from trainyard.errors import InputError
from trainyard.learn.evaluate import judge
from trainyard.learn.foresight import OF_FUTURE
from trainyard.learn.journal import Journal
from trainyard.learn.networks import arrays_of, make
from trainyard.learn.play import mean_jct, play
from trainyard.learn.rl import Settings, Trainer, advantages, relative
from trainyard.learn.settings.splits import dl2_split
from trainyard.learn.warmup import Imitation, taught, warm_up
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.matrix import Raw

pytestmark = pytest.mark.torch
TESTBED = dl2_split("testbed")
TINY = Settings(iterations=4, rows=4, group=2, decisions=24, leg=2, minibatch=32, validate=4, value_first=1)


def test_advantages_by_hand():
    # Two decisions in a slot, one in the next, and the end; then a slot of another episode that goes on.
    rewards = np.array([[0.0], [-2.0], [-1.0], [0.0]])
    values = np.array([[-4.0], [-3.0], [-2.0], [-5.0], [-6.0]])
    ends = np.array([[False], [True], [True], [False]])
    dones = np.array([[False], [False], [True], [False]])
    found = advantages(rewards, values, ends, dones, discount=0.5, trace=0.5, trace_inside=0.8)
    last = 0.0 + -6.0 - -5.0  # inside a slot nothing is discounted
    third = -1.0 - -2.0  # nothing comes after the end
    second = (-2.0 + 0.5 * -2.0 - -3.0) + 0.5 * 0.5 * third
    first = (0.0 + -3.0 - -4.0) + 0.8 * second
    np.testing.assert_allclose(found[:, 0], [first, second, third, last])


def test_without_values_advantages_are_returns():
    rewards = np.array([[0.0], [-2.0], [0.0], [-4.0]])
    ends = np.array([[False], [True], [False], [True]])
    found = advantages(rewards, np.zeros((5, 1)), ends, np.zeros_like(ends), 0.9, 1.0, 1.0)
    np.testing.assert_allclose(found[:, 0], [-5.6, -5.6, -4.0, -4.0])


def test_rows_of_a_group_are_measured_by_each_other():
    gained = np.array([[3.0, 1.0, 7.0], [4.0, 5.0, 8.0], [2.0, 6.0, 9.0]])
    moments = np.array([[1, 1, 1], [1, 2, 9], [2, 2, 9]])
    # Slot 1 begins with 3, 1 and 7, slot 2 with 2 and 5, and row 2 is alone in slot 9.
    np.testing.assert_allclose(
        relative(gained, moments), [[3 - 4, 1 - 5, 7 - 2], [4 - 4, 5 - 2, 8], [2 - 5, 6 - 2, 9]]
    )


def trainer(settings, kind="set", directory=None):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    features = Raw(TESTBED.names) if kind == "window" else Features()
    policy = make(kind, features.of_job, features.of_cluster, 3, hidden=8)
    value = make(kind, features.of_job, features.of_cluster + OF_FUTURE, 1, hidden=8)
    return Trainer(policy, value, [(1.0, TESTBED.training)], features, settings, directory)


def curve(it):
    notes = []
    it.train(Journal(None, lambda *note: notes.append(note)), TESTBED.validation, 1)
    return notes


def test_the_same_seed_gives_the_same_curve_and_another_one_another():
    one, same, other = (curve(trainer(replace(TINY, seed=seed))) for seed in (1, 1, 2))
    assert str(one) == str(same)
    assert str(one) != str(other)


def test_a_training_goes_on_from_its_checkpoint_as_if_nothing_had_happened(tmp_path):
    whole = trainer(replace(TINY, replay=1))
    curve(whole)
    part = trainer(replace(TINY, replay=1), directory=tmp_path)
    collect = part.collect

    def broken(*given):
        if part.iteration == 3:
            raise KeyboardInterrupt
        return collect(*given)

    part.collect = broken
    with pytest.raises(KeyboardInterrupt):
        curve(part)
    rest = trainer(replace(TINY, replay=1), directory=tmp_path)
    assert rest.resume()
    assert rest.iteration == 2
    curve(rest)
    for name, array in arrays_of(whole.policy).items():
        np.testing.assert_array_equal(array, arrays_of(rest.policy)[name])
    assert whole.best[0] == rest.best[0]
    with pytest.raises(InputError, match="other settings"):
        trainer(replace(TINY, replay=1, seed=9), directory=tmp_path).resume()


@pytest.mark.parametrize(
    "switch",
    [
        {"baseline": False},
        {"entropy": 0.1},
        {"replay": 2},
        {"explore": 0.4},
        {"reward": "progress"},
        {"group": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["set", "window"])
def test_every_ingredient_can_be_switched(switch, kind):
    it = trainer(replace(TINY, iterations=2, **switch), kind)
    notes = curve(it)
    assert all(
        np.isfinite(number) for _, _, numbers in notes for key, number in numbers.items() if key != "jct"
    )


def test_values_are_learnt_before_the_policy_moves():
    it = trainer(replace(TINY, iterations=1, value_first=1))
    before = arrays_of(it.policy), arrays_of(it.value)
    curve(it)
    after = it.policy.state_dict()
    for name, array in before[0].items():
        np.testing.assert_array_equal(after[name].numpy(), array)
    moved = [not np.array_equal(it.value.state_dict()[n].numpy(), a) for n, a in before[1].items()]
    assert any(moved)


def test_warm_up_comes_close_to_its_teacher_on_other_traces():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    features, teacher = Features(), parse_policy("drf")
    policy = make("set", features.of_job, features.of_cluster, 3)
    how = Imitation(decisions=40_000, chunk=8192)
    warm_up(policy, taught(TESTBED.training, teacher), features, how, Journal())
    found = mean_jct(play(policy, TESTBED.held_out, 10, features, np.random.default_rng(0)))
    told = judge(TESTBED.held_out, 10, [teacher]).jct.mean()
    assert 0.9 * told < found < 1.03 * told
