"""Kinds: equal jobs share one, different jobs never do, and nothing is kept for jobs that are gone."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import APART
from stage_cases import EACH
from trainyard.core.events import DecisionDue, JobFinished, JobSubmitted
from trainyard.core.yard import Yard
from trainyard.files.jobs import load_jobs, write_jobs
from trainyard.model import interned
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Fit, Input, Layer, Loss, Profile, Sync, Tables
from trainyard.model.speed import Sensitivity, SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.kinds import Kinds
from trainyard.policy.types.hadar import buyers_of
from trainyard.policy.types.market.profiled import profiled
from trainyard.policy.types.options import options_of
from trainyard.policy.types.sia import configurations
from trainyard.state.beliefs import Told
from trainyard.state.jobs import Column

TYPES = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
NODES = (Node("v", "V100", 8, 24.0, 500.0), Node("k", "K80", 8, 24.0, 500.0))
CLUSTER = Cluster("two", NODES, TYPES)


def full(**other) -> Profile:
    """A profile with every part, made anew each time."""
    parts = {
        "name": "own",
        "batch": 64,
        "compute": Compute(0.01, {"V100": 0.001, "K80": 0.004}),
        "sync": Sync("ps", gradient_mb=50.0),
        "layers": (Layer(0.001, 0.002, 20.0), Layer(0.003, 0.004, 30.0)),
        "input": Input(0.001, 110.0, 140.0),
        "tables": Tables(((1, 1, 10.0), (2, 2, 18.0)), ((1.0, 8.0, 5.0), (4.0, 8.0, 9.0))),
        "worker": Demand(1.0, 8.0),
        "server": Demand(0.5, 4.0),
        "loss": Loss(0.1, 1.0, 0.2, 9e3),
        "fit": Fit(9, 1, 0.9, 0.01, 0.1),
    }
    return Profile(**{**parts, **other})


def job(job_id="a", **other) -> Job:
    asked = {"gpus": 4, "samples": 1e6, "profile": full(), "min_gpus": 2, "max_gpus": 6}
    return Job(**{"job_id": job_id, "arrival_s": 0.0, **asked, **other})


# -- equal jobs ---------------------------------------------------------------------------------------------


def test_jobs_of_equal_content_are_of_one_kind():
    one, other = job("a"), job("b", arrival_s=7.0, samples=5.0, weight=2.0, tenant="t", deadline_s=9.0)
    assert one.profile is not other.profile
    assert one.profile.content is other.profile.content
    assert one.kind is other.kind


def test_a_limit_that_is_left_out_is_the_requested_number():
    assert job(min_gpus=None, max_gpus=None).kind is job(min_gpus=4, max_gpus=4).kind


def test_what_the_profile_asks_for_counts_as_asked():
    assert job(profile=APART, cpus=4.0, memory_gb=32.0).kind is job(profile=APART).kind


def test_inline_profiles_of_a_file_share_a_kind(tmp_path):
    """However they are written: with keys in another order, whole numbers, or defaults spelled out."""
    short = {"batch": 8, "compute": {"fixed_s": 0.5, "per_sample_s": {"V100": 0.25}}}
    long = {"compute": {"per_sample_s": {"V100": 0.25}, "fixed_s": 0.5}, "batch": 8, "restart_s": 10}
    other = {"batch": 9, "compute": {"fixed_s": 0.5, "per_sample_s": {"V100": 0.25}}}
    path = tmp_path / "jobs.jsonl"
    lines = [
        {"job_id": str(i), "arrival_s": 0, "gpus": 1, "samples": 9, "profile": profile}
        for i, profile in enumerate((short, long, short, other))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, second, third, last = [read.kind for read in load_jobs(path, {})]
    assert first is second is third
    assert last is not first


def test_a_kind_survives_files_pickles_and_copies(tmp_path):
    one = job(profile=replace(full(), name=""))
    write_jobs(tmp_path / "jobs.jsonl", [one])
    (read,) = load_jobs(tmp_path / "jobs.jsonl", {})
    assert read.kind is one.kind
    assert pickle.loads(pickle.dumps(one)).kind is one.kind
    assert copy.deepcopy(one).kind is one.kind
    assert pickle.loads(pickle.dumps(one.kind)) is one.kind
    assert copy.deepcopy(one.kind.content) is one.kind.content


def test_a_kind_is_no_field_of_a_job():
    asked, never = job(), job()
    assert asked.kind.gpus == 4
    assert asked == never
    assert asdict(asked) == asdict(never)
    assert repr(asked) == repr(never)


def test_threads_that_ask_at_once_get_one_kind():
    with ThreadPoolExecutor(8) as pool:
        kinds = list(pool.map(lambda i: job(str(i), gpus=5).kind, range(400)))
    assert len(set(kinds)) == 1


# -- different jobs -----------------------------------------------------------------------------------------

OTHER_JOB = {"gpus": 5, "min_gpus": 1, "max_gpus": 7, "gpu_type": "K80", "cpus": 3.0, "memory_gb": 9.0}
OTHER_JOB |= {"sizes": (2, 4, 8)}
OF_ITS_OWN = {
    "job_id",
    "arrival_s",
    "duration_s",
    "samples",
    "model",
    "tenant",
    "weight",
    "deadline_s",
    "terms",
}
OF_ITS_OWN |= {
    "status",
    "checkpoint_s",
    "user",
    "priority",
    "preemptible",
}  # what jobs of a kind may differ in


def test_every_field_of_a_job_either_makes_a_kind_or_does_not():
    """A new field of Job fails here until somebody decides."""
    made = {field.name for field in fields(Job) if field.init}
    assert made == OF_ITS_OWN | {*OTHER_JOB, "profile"}


@given(st.sampled_from(sorted(OTHER_JOB)), st.booleans())
def test_one_field_makes_another_kind(name, with_profile):
    one = job(profile=full() if with_profile else None)
    assert replace(one, **{name: OTHER_JOB[name]}).kind is not one.kind


def _flipped(value):
    """All values that differ from this one in one place."""
    if value is None:
        return
    if isinstance(value, str):
        yield value + "x"
    elif isinstance(value, (int, float)):
        yield value + 1
    elif isinstance(value, dict):
        yield dict(reversed(value.items()))
        yield from ({**value, key: new} for key, old in value.items() for new in _flipped(old))
    elif isinstance(value, tuple):
        yield value[1:]
        yield from (
            (*value[:i], new, *value[i + 1 :]) for i, old in enumerate(value) for new in _flipped(old)
        )
    else:
        for field in fields(value):
            old = getattr(value, field.name)
            yield from (replace(value, **{field.name: new}) for new in _flipped(old))


@given(st.data())
def test_one_number_of_a_profile_makes_another_kind(data):
    """The order of GPU types too: the first one stands for types without a time of their own."""
    one = job()
    other = replace(one, profile=data.draw(st.sampled_from(list(_flipped(full())))))
    assert other.profile.content is not one.profile.content
    assert other.kind is not one.kind


@pytest.mark.parametrize("part", [field.name for field in fields(Profile) if field.default is None])
def test_a_part_that_is_left_out_makes_another_kind(part):
    assert job(profile=full(**{part: None})).kind is not job().kind


def test_the_order_of_gpu_types_matters_to_speed():
    """Why the order counts: times of other types follow from the first one."""
    times = {"K80": 0.003, "P100": 0.001}
    one = Profile(batch=64, compute=Compute(0.0, times))
    other = Profile(batch=64, compute=Compute(0.0, dict(reversed(times.items()))))
    speed = SpeedModel(CLUSTER)
    assert speed.curve(job(profile=one), 0, 1)[1] != speed.curve(job(profile=other), 0, 1)[1]


# -- caches -------------------------------------------------------------------------------------------------

SPEEDS = Profile(batch=64, compute=Compute(0.01, {"V100": 0.001}), sync=Sync(gradient_mb=50.0))
CHATTY = replace(SPEEDS, sync=Sync(gradient_mb=5000.0))  # fastest with few workers
SLOWER = replace(SPEEDS, compute=Compute(0.01, {"V100": 0.002}))
DIFFERENT = {
    "profile": {"profile": SLOWER},
    "gpus": {"gpus": 3},
    "least": {"min_gpus": 1},
    "most": {"max_gpus": 5},
    "type": {"gpu_type": "K80"},
    "cpus": {"cpus": 80.0},
    "memory": {"memory_gb": 1600.0},
}


def yard_of(*jobs: Job) -> Yard:
    yard = Yard(CLUSTER, parse_policy("fifo").decide)
    for one in jobs:
        yard.handle(JobSubmitted(0.0, one))
    return yard


def _numbers(jobs):
    """What every cache says of the jobs of one yard, by job."""
    view = yard_of(*jobs).snapshot(0.0)
    rows, capacity = np.arange(len(jobs)), view.nodes.gpus_of_type
    held, types = np.zeros((len(jobs), 2), np.int64), view.table.column(Column.TYPE).astype(np.int64)
    gangs, chosen = options_of(view, rows, capacity), configurations(view, rows, capacity)
    buyers = buyers_of(view, rows, held, capacity, np.zeros(len(jobs), np.bool_))
    market = profiled(view.speed, jobs, types, capacity, np.ones(len(jobs)))
    kinds = Kinds()
    of, smd = kinds.of(Told(view), rows.tolist()), parse_policy("smd").size._numbers(Told(view), rows)
    for j, one in enumerate(jobs):
        paces = market.kinds[market.kind_of[j]]
        base, end = kinds.base[of[j]], [*kinds.base, kinds.speeds.size][of[j] + 1]
        yield [
            *(gangs.speed[j], gangs.use[j], chosen.use[chosen.job == j], chosen.speed[chosen.job == j]),
            *((buyers[j].menu.by_type, buyers[j].menu.speed) if j in buyers else ()),
            *(*paces.menu, paces.room, kinds.speeds[base:end], kinds.demand[of[j]], kinds.least[of[j]]),
            *(kinds.most_workers[of[j]], smd[0][j], smd[1][j]),
            *_ladders(view.sensitivity, jobs, j),
            view.speed.reference_rate(one),
            view.speed.curve(one, 0, one.most_gpus),
        ]


def _ladders(sensitivity: Sensitivity, jobs, j):
    (ladder,) = sensitivity.ladders(jobs[j : j + 1], [[(0, 2)]])
    return ladder.cpus, ladder.memory, ladder.speed


@pytest.mark.parametrize("change", DIFFERENT)
@pytest.mark.parametrize("profile", [SPEEDS, CHATTY, replace(SPEEDS, input=Input(0.001, 110.0, 900.0)), None])
def test_caches_do_not_mix_jobs_that_differ_in_one_field(change, profile):
    """Next to a job that differs in one field, in any order, a job is told what it is told alone."""
    one = job("one", profile=profile, samples=None, duration_s=100.0)
    other = replace(one, job_id="other", **DIFFERENT[change])
    alone = {each.job_id: next(_numbers([each])) for each in (one, other)}
    for pair in ([one, other], [other, one]):
        for each, told in zip(pair, _numbers(pair), strict=True):
            assert len(told) == len(alone[each.job_id])
            for a, b in zip(told, alone[each.job_id], strict=True):
                np.testing.assert_array_equal(a, b)


def test_ladders_of_one_profile_go_by_what_each_job_asks_for():
    sensitivity = Sensitivity(CLUSTER, SpeedModel(CLUSTER))
    hungry, plain = job("hungry", profile=SPEEDS, cpus=24.0), job("plain", profile=SPEEDS)
    for one, cpus in ((hungry, 2.0), (plain, 1.0), (hungry, 2.0)):
        (ladder,) = sensitivity.ladders([one], [[(0, 4)]])
        assert ladder.cpus == (cpus,)


# -- memory -------------------------------------------------------------------------------------------------


def test_nothing_is_taken_for_a_dead_object_at_the_same_address():
    """Jobs and profiles come and go, so that addresses are used again; every answer is its own."""
    sensitivity = Sensitivity(CLUSTER, SpeedModel(CLUSTER))
    for k in range(1, 100):
        profile = Profile(batch=64, compute=Compute(0.0, {"V100": 0.001 * k}))
        one = job(gpus=1, profile=profile, cpus=3.0 * k, min_gpus=None, max_gpus=None)
        (ladder,) = sensitivity.ladders([one], [[(0, 1)]])
        assert ladder.cpus == (k,)
        assert one.kind.asked_per_gpu == (3.0 * k, None)
        del one, profile


def test_kinds_and_contents_go_with_their_jobs():
    gc.collect()
    before = len(interned._known)
    one = job(gpus=6, max_gpus=9, profile=full(name="nobody else has this"))
    kind, content = weakref.ref(one.kind), weakref.ref(one.kind.content)
    assert len(interned._known) == before + 2
    del one
    gc.collect()
    assert kind() is None
    assert content() is None
    assert len(interned._known) <= before


@pytest.mark.parametrize("policy", EACH)
def test_memory_does_not_grow_with_jobs_of_one_kind(policy):
    """Each job has a profile object of its own; they come and go, and the caches keep one of them."""
    gc.collect()
    yard = Yard(CLUSTER, parse_policy(policy).decide)
    sizes, alive = [], weakref.WeakSet()
    for k in range(30):
        one = job(f"j{k}", profile=replace(SPEEDS), max_gpus=4)
        alive.add(one.kind)
        yard.handle(JobSubmitted(float(k), one))
        yard.handle(DecisionDue(float(k)))
        yard.handle(JobFinished(float(k) + 0.5, one.job_id))
        view = yard.snapshot(float(k))
        kept = view.speed._profiles, view.speed.derived, view.sensitivity._ladders, interned._known
        sizes.append([len(each) for each in kept])
    assert list(alive) == [one.kind]
    assert sizes[-1] == sizes[1]
