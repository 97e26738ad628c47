"""The environment that a policy learns in: its books, its mask, its numbers."""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
import pytest

from learn_cases import CLUSTER, SETTING, on_testbed, ring
from trainyard.errors import InputError, TrainyardError
from trainyard.learn.batch import BatchEnv, Reward
from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import KINDS
from trainyard.learn.settings.paper_speeds import SPEEDS
from trainyard.learn.slot_env import slot_env
from trainyard.learn.workload import bound
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed.tables import table_of
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import FIXED, MOVING, Features
from trainyard.policy.size.dl2.slot import STOP, Slots
from trainyard.sim.clock import Simulator


def at_random(mask, draw, stop=0.1):
    """A legal action of each row, now and then to stop."""
    score = draw.random(mask.shape) * mask
    score[:, STOP] *= draw.random(len(mask)) < stop
    return score.argmax(axis=1)


def play(env, choose):
    """Play all episodes; return the sums of all rewards."""
    seen, sums = env.reset(), np.zeros(3)
    while not env.idle:
        seen, step = env.step(choose(seen))
        rewards = np.array([step.reward(kind) for kind in get_args(Reward)])
        sums += rewards.sum(axis=1)
        assert not rewards[[0, 2]][:, ~step.slot_end].any()
    return sums


@pytest.mark.parametrize("scenario", [on_testbed, ring])
@pytest.mark.parametrize("start", [True, False])
def test_rewards_add_up_to_completion_times_and_jobs(scenario, start):
    draw = np.random.default_rng(3)
    env = BatchEnv(scenario, 4, start=start, episodes=9)
    spent, delay, done = play(env, lambda seen: at_random(seen.mask, draw))
    assert sorted(outcome.episode for outcome in env.outcomes) == list(range(9))
    jobs = [len(scenario(i).jobs) for i in range(9)]
    assert done == pytest.approx(sum(jobs))
    waited = [outcome.avg_jct * jobs[outcome.episode] for outcome in env.outcomes]
    assert -spent == pytest.approx(sum(waited))
    ideal = [bound(scenario(i), Slots(1, Features())) * jobs[i] for i in range(9)]
    assert -delay == pytest.approx(sum(waited) - sum(ideal))


def test_rows_do_not_disturb_one_another():
    """The first job that may have more gets it: alone or in company, an episode goes the same way."""

    def first(seen):
        return np.where(seen.mask[:, 1:].any(axis=1), 1 + seen.mask[:, 1:].argmax(axis=1), STOP)

    together, alone = BatchEnv(on_testbed, 3, episodes=6), BatchEnv(on_testbed, 1, episodes=6)
    play(together, first)
    play(alone, first)
    assert sorted(together.outcomes) == sorted(alone.outcomes)


def test_growing_one_pair_at_a_time_by_share_is_drf():
    """Giving both to the smallest share, until nothing fits, is what the size stage `drf` does."""

    def fairly(seen):
        both = seen.mask[:, 3::ACTIONS]
        share = np.where(both, seen.jobs[:, :, -len(MOVING)], np.inf)
        return np.where(both.any(axis=1), 3 + ACTIONS * share.argmin(axis=1), STOP)

    env = BatchEnv(on_testbed, 5, episodes=5)
    play(env, fairly)
    for outcome in env.outcomes:
        scenario = on_testbed(outcome.episode)
        simulator = Simulator(CLUSTER, scenario.jobs, parse_policy("drf"), Rules(round_s=SETTING.slot_s))
        expected = simulator.run().summary()["avg_jct_s"] / SETTING.slot_s
        assert outcome.avg_jct == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scenario", [on_testbed, ring])
def test_legal_is_what_the_job_may_have_and_the_cluster_has(scenario):
    draw = np.random.default_rng(1)
    env = BatchEnv(scenario, 3, start=False)
    seen = env.reset()
    for _ in range(300):
        for b in range(3):
            snapshot = env.episodes[b].simulator.yard.snapshot(env.episodes[b].simulator.now_s)
            assert seen.mask[b].tolist() == legal(env.slots, b, snapshot)
        seen, _ = env.step(at_random(seen.mask, draw))


def legal(slots, b, snapshot):
    """The rules, job by job, in whole numbers of what the cluster has."""
    cluster = snapshot.nodes.cluster
    has = np.array([cluster.gpus, snapshot.nodes.cpus.sum(), snapshot.nodes.memory_gb.sum()])
    jobs = [snapshot.table.jobs[row] for row in slots.rows[b]]
    sizes = [(int(slots.jobs.workers[b, j]), int(slots.jobs.servers[b, j])) for j in range(len(jobs))]

    def taken(job, workers, servers):
        if job.profile.apart:
            return np.array([workers, *job.need(workers, servers)])
        return workers * has / cluster.gpus

    left = has - sum(taken(job, *size) for job, size in zip(jobs, sizes, strict=True))
    mask = [True]
    for job, (workers, servers) in zip(jobs, sizes, strict=True):
        for more_workers, more_servers in ((1, 0), (0, 1), (1, 1)):
            first = workers == 0
            fewest = (0, 1, 1) if job.profile.apart else (1, 0, 0)
            known = (more_workers, more_servers) != (0, 1) and more_servers == fewest[2] if first else True
            grow = job.least_gpus if first and more_workers else more_workers
            mask.append(
                known
                and (job.profile.apart or not more_servers)
                and workers + grow <= job.most_gpus
                and servers + more_servers <= (job.most_gpus if job.profile.apart else 0)
                and bool((taken(job, grow, more_servers) <= left + 1e-6).all())
            )
    return mask + [False] * (1 + ACTIONS * slots.width - len(mask))


@pytest.mark.parametrize("scenario", [on_testbed, ring])
def test_what_one_action_changes_is_what_a_fresh_look_shows(scenario):
    draw = np.random.default_rng(5)
    env = BatchEnv(scenario, 4, features=Features(tuple(kind.model for kind in KINDS)))
    seen = env.reset()
    for _ in range(100):
        seen, _ = env.step(at_random(seen.mask, draw))
        slots, before = env.slots, env.slots.jobs.features.copy()
        b, j = np.nonzero(np.arange(slots.width) < slots.count[:, None])
        moving = slots.features.of_size(slots, b, j)
        np.testing.assert_allclose(before[b, j, slots.features.moving], moving, rtol=1e-5, atol=1e-6)
        assert np.isfinite(before).all()
        assert np.abs(before).max() < 50


def test_numbers_of_a_slot_worked_out_by_hand():
    job = Job("a", 0.0, 1, samples=2.4e5, profile=profile_named("wlm"), min_gpus=1, max_gpus=16)
    env = BatchEnv(lambda _: Scenario(CLUSTER, [job], 300.0), 1, features=Features(("other", "wlm")))
    seen = env.reset()
    seen, _ = env.step(np.array([2]))  # one more server
    numbers = dict(zip(env.slots.features.labels, seen.jobs[0, 0].tolist(), strict=True))

    table = table_of(SPEEDS["wlm"])

    def speed(w, p):
        return float(table.at(np.array([w]), np.array([p]))[0])

    peak = max(speed(w, p) for w in range(1, 17) for p in range(1, 17))
    assert (speed(1, 1), speed(1, 3), peak) == pytest.approx((162, 310, 498))
    assert numbers["wlm"] == 1.0
    assert numbers["other"] == 0.0
    assert numbers["work left, as part of the whole"] == 1.0
    assert numbers["dominant share"] == pytest.approx(6 / 48)  # three tasks of two CPUs
    assert numbers["log servers"] == pytest.approx(np.log(3))
    assert numbers["speed, as part of the peak"] == pytest.approx(speed(1, 2) / peak, rel=1e-4)
    gained = (speed(1, 3) - speed(1, 2)) / peak
    assert numbers["root of the speed gained by a server"] == pytest.approx(gained**0.5, rel=1e-3)
    assert numbers["log speed with both over speed"] == pytest.approx(
        np.log(speed(2, 3) / speed(1, 2)), abs=1e-4
    )
    left = np.log1p(2.4e5 / speed(1, 2) / 300)
    assert numbers["work left, log slots at this speed"] == pytest.approx(left, rel=1e-4)
    # One job, so that its fair share is the whole; of 48 CPUs and GB a worker takes 2 and 4, a server 2.
    saved = {
        (w, p): (speed(1 + w, 2 + p) - speed(1, 2)) / peak / max(4 * w / 48, 2 * (w + p) / 48)
        for w in range(9)
        for p in range(9)
        if 0 < w + p <= 8
    }
    for which, among in {
        "a worker": [gain for (w, _), gain in saved.items() if w],
        "a server": [gain for (_, p), gain in saved.items() if p],
        "both": [gain for (w, p), gain in saved.items() if w and p],
    }.items():
        told = numbers[f"log of the most delay saved per fair share within eight tasks, {which} among them"]
        assert told == pytest.approx(np.log(max(among)), abs=1e-4)
    assert seen.cluster[0, :3] == pytest.approx([1 - 1 / 24, 1 - 6 / 48, 1 - 4 / 48])


def profile_named(model):
    return next(job for i in range(9) for job in on_testbed(i).jobs if job.model == model).profile


def test_room_for_more_jobs_is_made():
    jobs = [Job(str(i), 0.0, 1, duration_s=600.0, min_gpus=1, max_gpus=4) for i in range(40)]
    env = BatchEnv(
        lambda _: Scenario(uniform_cluster(2, 8), jobs, 300.0), 2, parse_policy("fifo(fill=greedy)")
    )
    seen = env.reset()
    assert seen.jobs.shape[:2] == (2, 40)
    assert int(env.slots.jobs.workers[0].sum()) == 16  # the others wait
    assert not seen.mask[:, 1:].any()
    _, step = env.step(np.array([STOP, STOP]))
    assert step.slot_end.all()


def test_one_name_for_each_number():
    features = Features(("a", "b"))
    assert len(set(features.labels)) == features.of_job == len(FIXED) + 2 + len(MOVING)


def test_an_episode_without_jobs_is_refused():
    with pytest.raises(TrainyardError, match="episode 0 has no jobs"):
        BatchEnv(lambda _: Scenario(CLUSTER, [], 300.0), 1).reset()


def test_slots_of_unlike_clusters_side_by_side():
    env = BatchEnv(lambda i: on_testbed(i) if i % 2 else ring(i), 2, episodes=4)
    draw = np.random.default_rng(0)
    play(env, lambda seen: at_random(seen.mask, draw))
    assert len(env.outcomes) == 4
    assert isinstance(env.slots, Slots)


class TestGymnasium:
    @pytest.mark.parametrize("encoding", ["rows", "matrix"])
    def test_it_is_one(self, encoding):
        from gymnasium.utils.env_checker import check_env

        from trainyard.learn.gym_env import SlotEnv

        names = Features(tuple(kind.model for kind in KINDS))
        env = SlotEnv(on_testbed, 12, encoding=encoding, features=names)
        check_env(env, skip_render_check=True)
        seen, info = env.reset(seed=4)
        reward, over = 0.0, False
        while not over:
            seen, more, over, _, info = env.step(env.action_space.sample(seen["mask"]))
            reward += more
        assert -reward == pytest.approx(10 * info["outcome"]["avg_jct"])

    def test_jobs_behind_the_window_keep_their_smallest_size(self):
        env = slot_env(on_testbed, 2, reward="progress")
        seen, _ = env.reset(seed=1)
        assert seen["jobs"].shape[0] == 2
        assert seen["mask"].shape == (7,)
        over, reward = False, 0.0
        while not over:
            seen, more, over, _, _ = env.step(np.int64(seen["mask"].nonzero()[0][-1]))
            reward += more
        assert reward == pytest.approx(10)

    def test_without_gymnasium_it_says_how_to_get_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "trainyard.learn.gym_env", None)
        with pytest.raises(InputError, match=r"pip install 'trainyard\[learn\]'"):
            slot_env(on_testbed)
