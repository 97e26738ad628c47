"""Unknown durations: policies guess, and every job still ends when its true work is done."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from purity_cases import TYPED, random_scene
from stage_cases import EACH
from trainyard import api
from trainyard.core.validate import validate
from trainyard.errors import InputError
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import PRESETS
from trainyard.sim.clock import Simulator
from trainyard.state.lifecycle import State

UNKNOWN = Rules(restart_s=5.0, unknown_durations=True)


def done_by_story(result, job, speed, restart_s):
    """Samples that a job did, from what it held and when; what it lost is not in a story."""
    done, since, held, first = 0.0, 0.0, None, True
    for change in result.story_of(job.job_id):
        if held is not None:
            done += speed.rate(job, held) * max(0.0, change.time_s - since)
            since = max(since, change.time_s)
        held = change.allocation if change.after is State.RUNNING else None
        if held is not None and change.before is State.WAITING:
            since = change.time_s + (0.0 if first else restart_s)
            first = False
    return done


@pytest.mark.parametrize("policy", [*EACH, *PRESETS])
def test_every_policy_works_and_every_job_ends_when_its_true_work_is_done(policy):
    scene = random_scene(Random(3), TYPED)
    result = Simulator(scene.cluster, scene.jobs, parse_policy(policy), UNKNOWN).run()
    speed = SpeedModel(scene.cluster)
    for job in scene.jobs:
        assert done_by_story(result, job, speed, 5.0) == pytest.approx(speed.work(job)[0], rel=1e-9)
    assert np.isfinite(result.outcomes.finish_s).all()


def test_books_stay_in_order_with_failures_and_rounds():
    for seed in range(6):
        scene = random_scene(Random(seed))
        run = Simulator(
            scene.cluster,
            scene.jobs,
            parse_policy("srtf+optimus"),
            replace(scene.rules, unknown_durations=True),
            scene.failures,
        )
        while run.advance():
            validate(run.yard)
            run.decide()
            validate(run.yard)
            assert all(record.remaining_at(run.now_s) > 0 for record in run.yard.table.records)
        assert not run.yard.records


@pytest.mark.parametrize("policy", ["fifo", "las", "tiresias", "fifo(fill=greedy)+spread"])
def test_who_never_asks_for_lengths_loses_nothing(policy):
    """The same starts and ends as with perfect knowledge, but for rounding."""
    scene = random_scene(Random(5), {"V100": (3, 4)})
    found = [
        Simulator(scene.cluster, scene.jobs, parse_policy(policy), replace(UNKNOWN, unknown_durations=hide))
        .run()
        .outcomes
        for hide in (False, True)
    ]
    for name in ("start_s", "finish_s", "ideal_s", "gpu_s"):
        assert getattr(found[0], name) == pytest.approx(getattr(found[1], name), rel=1e-9)


def test_fairness_is_measured_by_the_truth():
    jobs = [Job(f"j{i}", 0.0, 4, 100.0 * (i + 1)) for i in range(4)]
    known, guessed = (
        api.simulate(uniform_cluster(1, 4), jobs, "fifo", unknown_durations=hide) for hide in (False, True)
    )
    assert (
        guessed.outcomes.ideal_s.tolist() == known.outcomes.ideal_s.tolist() == [100.0, 200.0, 300.0, 400.0]
    )
    assert guessed.outcomes.fair_s == pytest.approx(known.outcomes.fair_s)
    assert guessed.outcomes.finish_s.tolist() == known.outcomes.finish_s.tolist()


def test_jobs_that_are_not_over_show_their_true_length_too():
    jobs = [Job("a", 0.0, 4, 100.0), Job("b", 0.0, 4, 200.0)]
    o = api.simulate(uniform_cluster(1, 4), jobs, "fifo", until_s=50.0, unknown_durations=True).outcomes
    assert o.ideal_s.tolist() == [100.0, 200.0]


def test_policies_learn_from_jobs_that_ended():
    """Four short ones of one tenant, then a long one of another: srtf knows by then who is short."""
    past = [Job(f"s{i}", 0.0, 4, 10.0, tenant="short") for i in range(4)]
    past += [Job(f"l{i}", 0.0, 4, 1000.0, tenant="long") for i in range(4)]
    new = [Job("long", 5000.0, 4, 1000.0, tenant="long"), Job("short", 5000.0, 4, 10.0, tenant="short")]
    o = api.simulate(uniform_cluster(1, 4), past + new, "srtf", unknown_durations=True).outcomes
    assert dict(zip(o.job_id, o.finish_s.tolist(), strict=True))["short"] == 5010.0


def test_a_simulation_needs_the_truth():
    with pytest.raises(InputError, match="job a has neither duration_s nor samples; give one of them"):
        api.simulate(uniform_cluster(1, 4), [Job("a", 0.0, 1)], "fifo")
    with pytest.raises(InputError, match="a simulation needs it as the truth"):
        api.simulate(uniform_cluster(1, 4), [Job("a", 0.0, 1)], "fifo", unknown_durations=True)


def test_the_core_is_not_told():
    run = Simulator(
        uniform_cluster(1, 4), [Job("a", 0.0, 1, 77.0, deadline_s=99.0)], parse_policy("fifo"), UNKNOWN
    )
    assert run.advance()
    (record,) = run.yard.table.records
    assert (record.job.duration_s, record.job.samples, record.job.deadline_s) == (None, None, 99.0)
    assert record.ideal_s == 3600.0
