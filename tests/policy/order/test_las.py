"""Least attained service and Tiresias: queues, ties and wakes by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import checked, finishes, set_numbers
from policy_cases import fair, names, nodes_of, snapshot_of
from trainyard.errors import InputError
from trainyard.model.job import Job
from trainyard.policy.order.las import Las
from trainyard.policy.order.tiresias import Tiresias


def job(name, gpus=1, duration_s=1e6):
    return Job(name, 0.0, gpus, duration_s=duration_s)


def served(services, gpus=None, order=None, now_s=0.0, held=None):
    """A snapshot of jobs a, b, ... that have attained so much service, and the order's ranking."""
    cluster = nodes_of(8)
    jobs = [job(chr(97 + i), (gpus or {}).get(chr(97 + i), 1)) for i in range(len(services))]
    snapshot = snapshot_of(cluster, jobs, held, now_s)
    for each, service in zip(jobs, services, strict=True):
        set_numbers(snapshot, each.job_id, attained=service, executed=service)
    return snapshot, "".join(names(snapshot, (order or Las()).rank(snapshot)))


def test_the_least_served_goes_first():
    assert served([300.0, 100.0, 200.0])[1] == "bca"


def test_services_that_differ_by_little_are_level():
    """Levels are a part in 64 of a power of two apart: 128 to 130 and 130 to 132 are two of them."""
    assert served([129.9, 128.0])[1] == "ab"
    assert served([130.0, 128.0])[1] == "ba"
    assert served([130.0, 129.9])[1] == "ba"


def test_who_runs_is_served_on():
    """a runs with 2 GPUs for 60 seconds: 120 GPU-seconds."""
    held = {"a": {"n0": 2}}
    assert served([0.0, 110.0], {"a": 2}, now_s=60.0, held=held)[1] == "ba"
    assert served([0.0, 150.0], {"a": 2}, now_s=60.0, held=held)[1] == "ab"


def test_in_plain_time_gpus_do_not_count():
    order = Las(threshold_s=(100.0,))
    held = {"a": {"n0": 2}}
    assert served([0.0, 110.0], {"a": 2}, order, 60.0, held)[1] == "ab"
    assert served([50.0, 0.0], {"a": 2}, order, 60.0, held)[1] == "ba"


QUEUES = Las(threshold_gpu_s=(100.0, 400.0))


def test_queues_by_what_was_attained():
    assert served([400.0, 100.0, 99.0, 399.0, 0.0], order=QUEUES)[1] == "cebda"


def test_the_end_of_a_queue_belongs_to_the_next_but_for_rounding():
    assert served([100.0, 99.9], order=QUEUES)[1] == "ba"
    assert served([100.0 - 1e-5, 99.0], order=QUEUES)[1] == "ba"  # rounding does not hold a job back
    assert served([99.99, 99.0], order=QUEUES)[1] == "ab"


def test_inside_a_queue_who_runs_goes_first():
    assert served([10.0, 20.0, 30.0], order=QUEUES, held={"c": {"n0": 1}})[1] == "cab"
    assert served([10.0, 20.0, 130.0], order=QUEUES, held={"c": {"n0": 1}})[1] == "abc"


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=6), st.sampled_from(["plain", "queues", "time"]))
def test_the_key_of_one_waiting_job_is_its_key_in_the_whole(services, which):
    order = {"plain": Las(), "queues": QUEUES, "time": Las(threshold_s=(50.0,))}[which]
    snapshot, _ = served(services, order=order)
    alone = [order.waiting_key(record) for record in snapshot.table.records]
    assert alone == order.key(snapshot).tolist()


@given(
    st.lists(st.floats(0.0, 1e6), min_size=1, max_size=6),
    st.sampled_from(["plain", "queues", "time"]),
    st.floats(0.0, 1e6),
)
def test_the_key_of_one_running_job_is_its_key_in_the_whole(services, which, now_s):
    order = {"plain": Las(), "queues": QUEUES, "time": Las(threshold_s=(50.0,))}[which]
    held = {chr(97 + i): {"n0": 1} for i in range(len(services))}
    snapshot, _ = served(services, order=order, now_s=now_s, held=held)
    alone = [order.key_of(record, now_s) for record in snapshot.table.records]
    assert alone == order.key(snapshot).tolist()


@given(st.lists(st.floats(0.0, 1e9), min_size=2, max_size=8))
def test_clearly_less_served_jobs_never_come_later(services):
    snapshot, _ = served(services)
    key = Las().key(snapshot)
    for a, b in np.ndindex(len(services), len(services)):
        if services[a] < services[b] / 1.02 - 1e-300:
            assert key[a] < key[b]


# -- wakes ------------------------------------------------------------------------------------------------


def wake_s(order, services, gpus, now_s=0.0, stopped=False):
    snapshot, _ = served(services, {"a": gpus}, now_s=now_s)
    return order.wake_s(snapshot, {"a": None if stopped else fair(nodes_of(8), {"n0": gpus})})


def test_a_job_that_starts_wakes_at_the_end_of_its_queue():
    assert wake_s(QUEUES, [0.0], 2) == 50.0
    assert wake_s(QUEUES, [60.0], 2, now_s=7.0) == 27.0
    assert wake_s(QUEUES, [100.0], 1) == 300.0
    assert wake_s(QUEUES, [400.0], 1) == inf


def test_a_job_that_runs_on_wakes_at_the_end_of_each_queue_in_turn():
    """Two GPUs from 0 s on: 100 GPU-seconds after 50 s, 400 after 200 s."""
    for now_s, next_s in [(0.0, 50.0), (49.0, 50.0), (50.0, 200.0), (199.0, 200.0), (200.0, inf)]:
        snapshot, _ = served([0.0], {"a": 2}, now_s=now_s, held={"a": {"n0": 2}})
        assert QUEUES.wake_s(snapshot, {}) == next_s


def test_the_next_of_all_jobs_counts():
    held = {"a": {"n0": 2}, "b": {"n0": 1}, "c": {"n0": 1}}
    snapshot, _ = served([0.0, 70.0, 399.0, 90.0], {"a": 2}, now_s=10.0, held=held)
    assert QUEUES.wake_s(snapshot, {}) == pytest.approx(30.0)  # `b`; `c` is done with queues at 1 s
    assert QUEUES.wake_s(snapshot, {"b": None}) == 50.0  # then it is `a`
    assert QUEUES.wake_s(snapshot, {"d": fair(nodes_of(8), {"n0": 1})}) == 20.0
    assert QUEUES.wake_s(snapshot, {"a": None, "b": None}) == inf


def test_in_plain_time_more_gpus_do_not_get_there_sooner():
    assert wake_s(Las(threshold_s=(100.0,)), [30.0], 4, now_s=5.0) == 75.0
    snapshot, _ = served([30.0], {"a": 4}, now_s=5.0, held={"a": {"n0": 4}})
    assert Las(threshold_s=(100.0,)).wake_s(snapshot, {}) == 70.0


def test_a_running_job_that_changes_is_served_up_to_now():
    """After 30 s with 2 GPUs it has 60 GPU-seconds, or 30 seconds, and goes on with 4 GPUs."""
    snapshot, _ = served([0.0], {"a": 2}, now_s=30.0, held={"a": {"n0": 2}})
    more = {"a": fair(nodes_of(8), {"n0": 4})}
    assert QUEUES.wake_s(snapshot, more) == 40.0
    assert Las(threshold_s=(100.0,)).wake_s(snapshot, more) == 100.0


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 3), st.booleans()), min_size=1, max_size=5),
    st.integers(0, 300),
    st.sampled_from([QUEUES, Las(threshold_s=(50.0, 200.0)), Las(threshold_gpu_s=(60.0,))]),
)
def test_until_the_wake_nobody_changes_queue_and_then_somebody_does(jobs, now_s, order):
    """Against queues of all running jobs, computed one by one."""
    services = [float(service) for service, _, _ in jobs]
    gpus = {chr(97 + i): count for i, (_, count, _) in enumerate(jobs)}
    held = {chr(97 + i): {"n0": jobs[i][1]} for i in range(len(jobs)) if jobs[i][2]}
    snapshot = snapshot_of(nodes_of(16), [job(name, count) for name, count in gpus.items()], held, now_s)
    for name, service in zip(gpus, services, strict=True):
        set_numbers(snapshot, name, attained=service, executed=service)

    def queues(at_s):
        return [order._level(order._served(snapshot.table.of[name], at_s)) for name in held]

    next_s = order.wake_s(snapshot, {})
    if next_s == inf:
        assert queues(now_s) == queues(1e9)
    else:
        assert next_s > now_s
        assert queues(now_s) == queues(now_s + (next_s - now_s) * 0.999)
        assert queues(now_s) != queues(next_s)


def test_run_time_and_gpu_time_are_kept_apart():
    snapshot, _ = served([0.0, 0.0])
    set_numbers(snapshot, "a", attained=500.0)
    set_numbers(snapshot, "b", executed=500.0)
    by_gpus, by_time = Las(threshold_gpu_s=(100.0,)), Las(threshold_s=(100.0,))
    assert by_gpus.rank(snapshot).tolist() == [1, 0]
    assert by_time.rank(snapshot).tolist() == [0, 1]
    for order in (by_gpus, by_time):
        keys = [order.waiting_key(record) for record in snapshot.table.records]
        assert keys == order.key(snapshot).tolist()


def test_without_queues_or_a_start_there_is_nothing_to_wake_for():
    assert wake_s(Las(), [0.0], 2) == inf
    assert wake_s(QUEUES, [0.0], 2, stopped=True) == inf


def test_a_long_job_gives_way_at_the_end_of_its_queue():
    """The long job runs for 40 s x 2 GPUs, leaves the first queue, and waits until the other one is done."""
    jobs = [job("long", 2, 100.0), Job("other", 10.0, 2, duration_s=30.0)]
    result = checked(nodes_of(2), jobs, "tiresias(threshold_gpu_s=80)")
    assert finishes(result) == {"other": 70.0, "long": 130.0}


def test_tiresias_has_two_queues_that_part_at_five_gpu_hours():
    assert Tiresias().ends == pytest.approx([18000.0])
    assert Tiresias().in_gpu_time
    assert served([17999.0, 0.0], order=Tiresias())[1] == "ab"
    assert served([18000.0, 0.0], order=Tiresias())[1] == "ba"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"threshold_gpu_s": (1.0,), "threshold_s": (1.0,)}, "not both"),
        ({"threshold_gpu_s": (5.0, 5.0)}, "thresholds must grow, but are 5:5"),
        ({"threshold_s": (5.0, 3.0)}, "thresholds must grow, but are 5:3"),
        ({"queues": 3, "threshold_s": (5.0,)}, "3 queues need 2 thresholds .*, 1 given"),
    ],
)
def test_wrong_thresholds_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        Las(**given)


def test_the_number_of_queues_may_be_told():
    assert Las(queues=2, threshold_s=(5.0,)).ends == pytest.approx([5.0])
    assert Las(queues=1).ends == []
