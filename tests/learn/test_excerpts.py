"""Episodes cut out of a list of jobs: parts that never mix, and jobs that begin in the first slot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainyard.errors import InputError
from trainyard.learn.episode import Scenario
from trainyard.learn.settings.splits import ALL, dl2_split
from trainyard.learn.workload import Split, bound, excerpts, from_zero, mixed
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.zoo import zoo_profile
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import Slots

CLUSTER = uniform_cluster(1, 8)


def jobs_of(count, gap_s=70.0):
    return [Job(f"j{i}", gap_s * i, 1, 100.0, min_gpus=1, max_gpus=4) for i in range(count)]


def numbers(scenario):
    return [int(job.job_id[1:]) for job in scenario.jobs]


def test_parts_of_a_file_never_mix():
    split = excerpts(CLUSTER, jobs_of(100)[::-1], 60.0, 15)
    seen = {
        name: {number for i in range(60) for number in numbers(getattr(split, name)(i))}
        for name in ("training", "validation", "held_out")
    }
    assert seen == {
        "training": set(range(60)),
        "validation": set(range(60, 80)),
        "held_out": set(range(80, 100)),
    }


def test_an_episode_is_a_run_of_jobs_and_always_the_same():
    split = excerpts(CLUSTER, jobs_of(100), 60.0, 15)
    for i in range(5):
        found = numbers(split.training(i))
        assert found == list(range(found[0], found[0] + 15))
        assert found == numbers(split.training(i))
    assert len({numbers(split.training(i))[0] for i in range(20)}) > 5


def test_a_part_that_is_too_short_is_taken_whole():
    split = excerpts(CLUSTER, jobs_of(50), 60.0, 999)
    assert numbers(split.held_out(3)) == list(range(40, 50))


def test_fifty_jobs_are_the_fewest():
    assert excerpts(CLUSTER, jobs_of(50), 60.0, 10).slot_s == 60
    with pytest.raises(InputError, match=r"^49 jobs are too few to learn from; give 50 or more$"):
        excerpts(CLUSTER, jobs_of(49), 60.0, 10)


def test_profiles_are_named_once_and_in_order():
    plain = jobs_of(50)
    profiles = {0: "vgg16", 3: "resnet50", 7: "vgg16"}
    jobs = [replace(j, profile=zoo_profile(profiles[i])) if i in profiles else j for i, j in enumerate(plain)]
    assert excerpts(CLUSTER, jobs, 60.0, 10).names == ("resnet50", "vgg16")


def test_the_first_job_keeps_its_place_in_the_slot():
    shifted = from_zero([Job("a", 130.0, 1, 5.0), Job("b", 200.0, 1, 5.0)], 60.0)
    assert [job.arrival_s for job in shifted] == [10, 80]
    assert from_zero([Job("a", 120.0, 1, 5.0)], 60.0)[0].arrival_s == 0


def test_several_splits_take_turns():
    def named(name):
        def source(part):
            return lambda number: f"{name} {part} {number}"

        return Split(source("train"), source("choose"), source("judge"), 60.0, (name, "x"))

    both = mixed([named("a"), named("b")])
    assert [both.training(i) for i in range(4)] == ["a train 0", "b train 0", "a train 1", "b train 1"]
    assert both.validation(3) == "b choose 1"
    assert both.held_out(2) == "a judge 1"
    assert both.names == ("a", "b", "x")


def test_the_bound_is_each_job_alone_at_its_best():
    """A linear job of 100 s on one GPU takes 25 s on four, one of 300 s that cannot grow 300 s."""
    jobs = [Job("a", 0.0, 1, 100.0, min_gpus=1, max_gpus=4), Job("b", 900.0, 1, 300.0)]
    found = bound(Scenario(CLUSTER, jobs, 100.0), Slots(1, Features()))
    assert found == pytest.approx((0.25 + 3) / 2)


def test_settings_by_name():
    split = dl2_split("testbed")
    assert split.slot_s == ALL["testbed"].slot_s
    first, again, other = split.training(0), split.training(0), split.training(1)
    assert list(first.jobs) == list(again.jobs) != list(other.jobs)
    assert list(split.validation(0).jobs) != list(first.jobs)
    with pytest.raises(InputError, match="unknown setting 'testbad'; did you mean 'testbed'"):
        dl2_split("testbed+testbad")


def test_settings_joined_take_turns():
    both = dl2_split("testbed+large")
    assert list(both.training(0).jobs) == list(dl2_split("testbed").training(0).jobs)
    assert list(both.training(1).jobs) == list(dl2_split("large").training(0).jobs)
