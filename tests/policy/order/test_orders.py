"""Orders by arrival, remaining time, remaining service and fairness: rankings by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from conftest import set_numbers
from policy_cases import names, nodes_of, snapshot_of
from trainyard.model.job import Job
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.order.srtf import Sjf, Srsf, Srtf
from trainyard.policy.order.themis import Ftf
from trainyard.policy.policy import Policy
from trainyard.state.jobs import Column

JOBS = [
    Job("a", 0.0, 4, duration_s=50.0),
    Job("b", 0.0, 1, duration_s=100.0),
    Job("c", 0.0, 2, duration_s=30.0),
    Job("d", 0.0, 1, duration_s=50.0),
]


def ranked(order, jobs=JOBS, held=None, now_s=0.0, gpus=8):
    snapshot = snapshot_of(nodes_of(gpus), jobs, held, now_s)
    return "".join(names(snapshot, order.rank(snapshot).tolist()))


def test_first_come_first_served_ranks_who_waits():
    assert ranked(Fifo()) == "abcd"
    assert ranked(Fifo(), held={"b": {"n0": 1}}) == "acd"


def test_fifo_yields_heads_without_a_ranking():
    snapshot = snapshot_of(nodes_of(8), JOBS, {"a": {"n0": 4}})
    assert "".join(record.job_id for record in Fifo().heads(snapshot)) == "bcd"


def test_shortest_job_first_ranks_who_waits_ties_by_submission():
    assert ranked(Sjf()) == "cadb"
    assert ranked(Sjf(), held={"c": {"n0": 2}}) == "adb"


def test_shortest_remaining_time_first_counts_what_is_done():
    assert ranked(Srtf()) == "cadb"
    assert ranked(Srtf(), held={"b": {"n0": 1}}, now_s=60.0) == "cbad"
    assert ranked(Srtf(), held={"b": {"n0": 1}}, now_s=50.0) == "cabd"  # a tie: as submitted


def test_smallest_remaining_service_first_counts_gpus():
    assert ranked(Srsf()) == "dcba"  # 50, 60, 100 and 200 GPU-seconds
    assert ranked(Srsf(), held={"a": {"n0": 4}}, now_s=40.0) == "adcb"


@pytest.mark.parametrize("order", [Srtf(), Srsf()])
def test_the_key_of_one_job_is_its_key_in_the_whole(order):
    snapshot = snapshot_of(nodes_of(8), JOBS, {"a": {"n0": 4}}, 20.0)
    runs, *wait = snapshot.table.records
    alone = [order.key_of(runs, 20.0), *(order.waiting_key(record) for record in wait)]
    assert alone == order.key(snapshot).tolist()


def test_which_orders_stop_jobs():
    assert [order.preemptive for order in (Fifo(), Sjf(), Srtf(), Srsf(), Ftf())] == [False] * 2 + [True] * 3
    assert (Fifo().fill, Sjf().fill, Srtf().fill) == ("strict", "strict", "greedy")
    assert Srtf().wake_s(snapshot_of(nodes_of(8), JOBS), {}) == inf


def test_choosing_is_walking_down_the_ranking():
    snapshot = snapshot_of(nodes_of(4), JOBS)
    demand = snapshot.table.column(Column.GPUS)
    assert "".join(names(snapshot, Srtf().choose(snapshot, demand).tolist())) == "cdb"
    assert "".join(names(snapshot, Fifo().choose(snapshot, demand).tolist())) == "a"


# -- finish-time fairness ---------------------------------------------------------------------------------


def rho(jobs, gpus, now_s=0.0, held=None):
    snapshot = snapshot_of(nodes_of(gpus), jobs, held, now_s)
    key = Ftf().key(snapshot)
    return {job.job_id: -float(key[row]) for row, job in enumerate(snapshot.table.jobs)}


def test_rho_is_time_in_the_system_over_time_with_a_fair_share():
    """Two jobs on 4 GPUs, each of 4: half of the cluster is fair, so 100 s would take 200 s."""
    jobs = [Job("a", 0.0, 4, duration_s=100.0), Job("b", 0.0, 4, duration_s=300.0)]
    assert rho(jobs, 4) == {"a": 0.5, "b": 0.5}
    assert rho(jobs, 4, now_s=100.0) == {"a": 1.0, "b": pytest.approx(400 / 600)}


def test_rho_counts_from_the_arrival():
    snapshot = snapshot_of(nodes_of(8), [Job("a", 0.0, 1, duration_s=100.0)], now_s=100.0)
    set_numbers(snapshot, "a", arrival_s=40.0)
    assert Ftf().key(snapshot).tolist() == pytest.approx([-(60 + 100) / 100])


def test_rho_counts_what_is_left_of_a_job_that_runs():
    jobs = [Job("a", 0.0, 4, duration_s=100.0), Job("b", 0.0, 4, duration_s=300.0)]
    assert rho(jobs, 4, 50.0, {"a": {"n0": 4}})["a"] == pytest.approx((50 + 50) / 200)


def test_where_there_is_room_for_all_a_fair_share_is_all_that_was_asked_for():
    """Two jobs of 1 GPU on 8: nobody can use more than it asked for."""
    jobs = [Job("a", 0.0, 1, duration_s=100.0), Job("b", 0.0, 1, duration_s=100.0)]
    assert rho(jobs, 8, now_s=20.0) == {"a": pytest.approx(1.2), "b": pytest.approx(1.2)}


def test_weight_multiplies_rho():
    jobs = [Job("a", 0.0, 1, duration_s=100.0), Job("b", 0.0, 1, duration_s=100.0, weight=3.0)]
    told = rho(jobs, 8)
    assert told == {"a": 1.0, "b": 3.0}
    assert ranked(Ftf(), jobs) == "ba"


def test_the_worst_off_goes_first():
    jobs = [Job("a", 0.0, 4, duration_s=1000.0), Job("b", 0.0, 4, duration_s=10.0)]
    assert ranked(Ftf(), jobs, now_s=50.0, gpus=4) == "ba"


def test_only_nodes_that_are_up_are_shared():
    """With no GPU at all the share is that of one: nothing is divided by zero."""
    jobs = [Job("a", 0.0, 2, duration_s=100.0)]
    snapshot = snapshot_of(nodes_of(4), jobs)
    snapshot.up_gpus = 0
    assert Ftf().key(snapshot).tolist() == [-0.5]
    snapshot.up_gpus = 1
    assert np.array_equal(Ftf().key(snapshot), [-0.5])


class Lifo(Fifo):
    """Last come, first served."""

    def rank(self, snapshot):
        return super().rank(snapshot)[::-1]

    def heads(self, snapshot):
        return reversed(list(super().heads(snapshot)))


def test_who_comes_first_blocks_those_behind_it():
    jobs = [Job("run", 0.0, 2, 100.0), Job("big", 1.0, 4, 10.0), Job("small", 2.0, 1, 10.0)]
    view = snapshot_of(nodes_of(4), jobs, {"run": {"n0": 2}}, 3.0)
    assert Fifo().blocked(view)
    assert not Fifo("easy").blocked(view)
    assert not Fifo("greedy").blocked(view)
    assert not Lifo().blocked(view)  # its head is another, which fits
    assert list(Policy("lifo", order=Lifo()).decide(view).changes) == ["small"]


def test_a_head_that_fits_the_free_gpus_is_not_blocked():
    jobs = [Job("run", 0.0, 2, 100.0), Job("next", 1.0, 2, 10.0)]
    assert not Fifo().blocked(snapshot_of(nodes_of(4), jobs, {"run": {"n0": 2}}, 3.0))
