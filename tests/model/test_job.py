"""What a job says of itself: its limits, its servers and what its workers ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import APART, SERVED
from trainyard.model.job import DEFAULT_CHECKPOINT_S, Job
from trainyard.model.profile import Demand, Profile, Sync


def job(**fields):
    return Job(**{"job_id": "j", "arrival_s": 0.0, "gpus": 4, **fields})


@pytest.mark.parametrize(
    ("limits", "least", "most", "elastic"),
    [
        ({}, 4, 4, False),
        ({"min_gpus": 4, "max_gpus": 4}, 4, 4, False),
        ({"min_gpus": 2}, 2, 4, True),
        ({"max_gpus": 9}, 4, 9, True),
        ({"min_gpus": 1, "max_gpus": 8}, 1, 8, True),
    ],
)
def test_limits_that_are_left_out_are_the_requested_number(limits, least, most, elastic):
    made = job(**limits)
    assert (made.least_gpus, made.most_gpus, made.elastic) == (least, most, elastic)


@pytest.mark.parametrize(
    ("fields", "particular"),
    [
        ({}, False),
        ({"cpus": 8.0}, True),
        ({"memory_gb": 8.0}, True),
        ({"cpus": 0.0}, True),
        ({"profile": SERVED}, False),
        ({"profile": APART}, True),
        ({"profile": replace(APART, server=None)}, False),
        ({"profile": replace(APART, worker=None)}, False),
        ({"profile": replace(APART, sync=Sync("ring"))}, False),
    ],
)
def test_who_asks_for_cpus_or_memory_of_its_own(fields, particular):
    assert job(**fields).particular is particular


@pytest.mark.parametrize(
    ("profile", "servers"),
    [(None, 0), (Profile(), 0), (Profile(sync=Sync("ring")), 0), (SERVED, 4), (APART, 4)],
)
def test_a_server_goes_with_each_worker_if_gradients_go_through_servers(profile, servers):
    assert job(profile=profile).servers == servers


@pytest.mark.parametrize(
    ("fields", "each"),
    [
        ({}, (None, None)),
        ({"cpus": 8.0}, (2.0, None)),
        ({"memory_gb": 100.0}, (None, 25.0)),
        ({"profile": APART}, (1.0, 8.0)),
        ({"profile": APART, "cpus": 8.0}, (2.0, 8.0)),  # what the job says wins
        ({"profile": APART, "memory_gb": 100.0}, (1.0, 25.0)),
        ({"profile": replace(SERVED, worker=Demand(1.0, 8.0))}, (None, None)),
    ],
)
def test_what_each_worker_asks_for(fields, each):
    assert job(**fields).asked_per_gpu == each


@pytest.mark.parametrize(
    ("fields", "need"),
    [
        ({}, (0.0, 0.0)),
        ({"cpus": 8.0}, (6.0, 0.0)),
        ({"memory_gb": 100.0}, (0.0, 75.0)),
        ({"profile": SERVED}, (0.0, 0.0)),
        ({"profile": APART}, (3 * 1.0 + 2 * 0.5, 3 * 8.0 + 2 * 4.0)),
        ({"profile": APART, "cpus": 8.0}, (3 * 2.0 + 2 * 0.5, 3 * 8.0 + 2 * 4.0)),
    ],
)
def test_what_three_workers_and_two_servers_need(fields, need):
    assert job(**fields).need(3, 2) == need


def test_a_job_has_a_checkpoint_every_half_hour_and_weight_one():
    assert (job().checkpoint_s, DEFAULT_CHECKPOINT_S, job().weight) == (1800.0, 1800.0, 1.0)


def test_profiles_say_whether_they_serve_and_whether_apart():
    assert (Profile().serves, Profile().apart) == (False, False)
    assert (SERVED.serves, SERVED.apart) == (True, False)
    assert (APART.serves, APART.apart) == (True, True)
    assert job().content is None
    assert job(profile=SERVED).content is SERVED.content
