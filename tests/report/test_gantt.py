"""The Gantt chart: nodes, window and lanes by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import checked
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.report import gantt
from trainyard.report.series import Steps
from trainyard.sim.segments import Segment


def demand(times, levels, end_s):
    return Steps(np.array(times, float), np.array(levels, float), float(end_s))


def part(job, start_s, end_s, indices=(0,), node="GPU-0"):
    return Segment(job, node, len(indices), float(start_s), float(end_s), indices)


def lanes(bars):
    return [(b.job_id, b.low, b.lanes, b.gpus) for b in bars]


def test_nodes_are_evenly_chosen_with_both_ends():
    nodes = uniform_cluster(10).nodes
    assert gantt.choose_nodes(Cluster("c", nodes), 4) == [nodes[i] for i in (0, 3, 6, 9)]
    assert gantt.choose_nodes(Cluster("c", nodes), 10) == list(nodes)
    assert len(gantt.choose_nodes(uniform_cluster(40))) == 24


def test_nodes_without_gpus_are_not_shown():
    nodes = (Node("cpu", "GPU", 0, 8, 64), Node("gpu", "GPU", 2, 8, 64))
    assert gantt.choose_nodes(Cluster("c", nodes), 2) == [nodes[1]]


def test_the_first_node_is_on_top():
    top, low = gantt.lay_bands([Node("a", "GPU", 4, 1, 1), Node("b", "GPU", 2, 1, 1)])
    assert (low.node.node_id, low.low, low.centre) == ("b", 0, 1)
    assert (top.node.node_id, top.low, top.centre) == ("a", 2.7, 4.7)
    chart = gantt.Gantt((top, low), 0, 1, 2, True, ())
    assert chart.top == 6.7
    assert gantt.Gantt((), 0, 1, 0, True, ()).top == 0


def test_captions():
    bands = gantt.lay_bands(uniform_cluster(2).nodes)
    whole = gantt.Gantt(bands, 0, 7200, 2, True, ())
    some = gantt.Gantt(bands, 3600, 10_800, 3, False, ())
    assert whole.caption() == "Shown: all nodes; the whole run."
    assert some.caption() == (
        "Shown: 2 of 3 nodes, evenly chosen; the 2.00 h in which most jobs were in the system."
    )


def test_only_stretches_of_one_job_on_one_node_are_joined():
    parts = [
        part("a", 0, 1),
        part("b", 0, 1),
        part("a", 1, 2, node="GPU-1"),
        part("b", 1, 3),
        part("a", 1, 2),
    ]
    assert gantt.merge_touching(parts) == [part("a", 0, 2), part("b", 0, 3), part("a", 1, 2, node="GPU-1")]


def test_a_job_that_comes_back_has_two_bars():
    parts = [part("a", 0, 1), part("a", 2, 3), part("a", 3, 4)]
    assert gantt.merge_touching(parts) == [part("a", 0, 1), part("a", 2, 4)]


def test_a_job_that_goes_on_with_other_gpus_has_two_bars():
    parts = [part("a", 0, 1, (0, 1)), part("a", 1, 2, (0, 1)), part("a", 2, 3, (1, 2))]
    assert gantt.merge_touching(parts) == [part("a", 0, 2, (0, 1)), part("a", 2, 3, (1, 2))]


def test_the_window_is_all_while_the_bars_can_be_seen():
    held = [[part(f"j{i}", i, i + 1) for i in range(4)]]
    level = demand([0, 2], [1, 5], 4)
    assert gantt.choose_window(held, level, 4) == (0, 4, True)
    start_s, end_s, whole = gantt.choose_window(held, level, 3)
    assert not whole
    assert (start_s, end_s) == pytest.approx((4 - 4 * 0.8**2, 4))  # at 0.8 of the run j0 is still there


def test_every_policy_counts_for_the_window():
    few, many = [part("a", 0, 10)], [part(f"j{i}", i, i + 1) for i in range(10)]
    level = demand([0, 5], [1, 2], 10)
    assert gantt.choose_window([few], level, 5)[2]
    start_s, end_s, whole = gantt.choose_window([few, many], level, 5)
    assert not whole
    assert sum(s.start_s < end_s and s.end_s > start_s for s in many) <= 5


def test_a_crowd_that_never_thins_out_ends_the_search():
    held = [[part(f"j{i}", 0, 10) for i in range(9)]]
    start_s, end_s, whole = gantt.choose_window(held, demand([0], [9], 10), 3)
    assert not whole
    assert 0 < end_s - start_s < 1e-4


def test_a_run_in_which_nothing_happens_has_no_window():
    assert gantt.choose_window([[]], demand([], [], 0), 3) == (0, 0, True)


def test_lanes_are_gpu_indices():
    bands = gantt.lay_bands(uniform_cluster(1, 8).nodes)
    parts = gantt.split([part("b", 0, 5, (2, 3)), part("c", 1, 5, (0, 1, 4, 6, 7)), part("cpus", 0, 9, ())])
    assert lanes(gantt.lay_bars(parts, bands)) == [
        ("b", 2, 2, 2),
        ("c", 0, 2, 5),
        ("c", 4, 1, 5),
        ("c", 6, 2, 5),
    ]


@given(st.sets(st.integers(0, 20)).map(sorted).map(tuple))
def test_runs_are_as_long_as_can_be_and_lose_nothing(indices):
    runs = [s.indices for s in gantt.split([part("a", 0, 1, indices)])]
    assert tuple(i for run in runs for i in run) == indices
    assert all(run == tuple(range(run[0], run[0] + len(run))) for run in runs)
    assert all(a[-1] + 1 < b[0] for a, b in pairwise(runs))


def test_bars_stand_in_the_band_of_their_node():
    bands = gantt.lay_bands(uniform_cluster(2, 2).nodes)
    bars = gantt.lay_bars([part("a", 0, 1, (0, 1), "GPU-1"), part("a", 0, 1, (1,), "GPU-0")], bands)
    assert lanes(bars) == [("a", 3.7, 1, 1), ("a", 0, 2, 2)]
    assert [(b.start_s, b.end_s) for b in bars] == [(0, 1), (0, 1)]


def test_the_chart_shows_the_gpus_that_jobs_held():
    """`b` and `c` are done first; the next takes the lowest GPUs that are free, not a run of neighbours."""
    jobs = [Job(name, 0.0, 1, run_s) for name, run_s in (("a", 50.0), ("b", 9.0), ("c", 80.0), ("d", 9.0))]
    result = checked(uniform_cluster(1, 4), [*jobs, Job("e", 10.0, 2, 5.0)])
    ((*bars,),) = gantt.build_gantt([result]).bars
    assert [(b.job_id, b.low, b.lanes) for b in bars] == [
        ("a", 0, 1),
        ("b", 1, 1),
        ("c", 2, 1),
        ("d", 3, 1),
        ("e", 1, 1),
        ("e", 3, 1),
    ]


def test_the_chart_of_two_policies_reaches_the_end_of_the_slower():
    jobs = [Job("long", 0.0, 8, 100.0), Job("short", 1.0, 8, 10.0)]
    results = [checked(uniform_cluster(1), jobs, policy, restart_s=20.0) for policy in ("fifo", "srtf")]
    chart = gantt.build_gantt(results)
    assert (chart.start_s, chart.end_s, chart.whole, chart.nodes_in_all) == (0, 130, True, 1)
    fifo, srtf = ([(b.job_id, b.start_s, b.end_s) for b in bars] for bars in chart.bars)
    assert fifo == [("long", 0, 100), ("short", 100, 110)]
    assert srtf == [("long", 0, 1), ("short", 1, 11), ("long", 11, 130)]
