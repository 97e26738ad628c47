"""Parameter servers: what they hold, where they sit, and what a change of them means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import checked
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.instructions import Start
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import InputError, PlanError
from trainyard.files.job_check import check_jobs
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, GpuType, Node, NodeTable, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Input, Profile, Sync
from trainyard.model.speed import SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.place.servers import evenly, with_servers
from trainyard.policy.request import Request
from trainyard.state.room import Room

TOGETHER = Profile(batch=64, compute=Compute(0.01, {"GPU": 0.001}), sync=Sync("ps", gradient_mb=100.0))
APART = replace(TOGETHER, worker=Demand(2.0, 10.0), server=Demand(1.0, 5.0))


def started(job, cluster, policy="fifo"):
    yard = Yard(cluster, parse_policy(policy).decide)
    yard.handle(JobSubmitted(0.0, job))
    (start,) = yard.handle(DecisionDue(0.0))
    validate(yard)
    assert isinstance(start, Start)
    return start.allocation


def test_without_demands_servers_live_on_their_workers_share():
    held = started(Job("a", 0.0, 4, 60.0, profile=TOGETHER), uniform_cluster(1, 8))
    assert held.shares == (Share("GPU-0", 4, 4, 12.0, 250.0),)


def test_with_demands_each_holds_its_own():
    held = started(Job("a", 0.0, 4, 60.0, profile=APART), uniform_cluster(1, 8))
    assert held.shares == (Share("GPU-0", 4, 4, 4 * 2.0 + 4 * 1.0, 4 * 10.0 + 4 * 5.0),)


def test_servers_go_to_other_nodes_if_there_is_no_room_beside_the_workers():
    """The first node's CPUs are all with its workers; the second has hardly any GPUs but many CPUs."""
    nodes = (Node("gpus", "GPU", 4, 8.0, 400.0), Node("cpus", "GPU", 1, 64.0, 400.0))
    held = started(Job("a", 0.0, 4, 60.0, profile=APART), Cluster("two", nodes))
    assert held.shares == (Share("gpus", 4, 0, 8.0, 40.0), Share("cpus", 0, 4, 4.0, 20.0))
    assert held.gpus == 4
    assert held.servers == 4


def test_who_needs_no_memory_fits_where_there_is_none_left():
    none = replace(TOGETHER, worker=Demand(1.0, 20.0), server=Demand(1.0, 0.0))
    cluster = Cluster("one", (Node("n", "GPU", 4, 12.0, 80.0),))
    held = started(Job("a", 0.0, 4, 60.0, profile=none), cluster)
    assert held.shares == (Share("n", 4, 4, 8.0, 80.0),)
    idle = replace(TOGETHER, worker=Demand(1.0, 0.0), server=Demand(1.0, 0.0))
    yard = Yard(cluster, parse_policy("fifo").decide)
    yard.handle(JobSubmitted(0.0, Job("full", 0.0, 1, 60.0, memory_gb=80.0, cpus=4.0)))
    yard.handle(JobSubmitted(0.0, Job("idle", 0.0, 3, 60.0, profile=idle)))
    assert [start.job_id for start in yard.handle(DecisionDue(0.0))] == ["full", "idle"]


def test_a_job_waits_for_room_for_its_servers():
    cluster = Cluster("one", (Node("n", "GPU", 4, 12.0, 400.0),))
    jobs = [Job("first", 0.0, 4, 60.0, cpus=8.0), Job("served", 0.0, 1, 60.0, profile=APART)]
    result = checked(cluster, [replace(jobs[0], gpus=3, cpus=10.0), jobs[1]])
    assert result.story_of("served")[2].time_s == pytest.approx(60.0)


def test_a_job_whose_servers_fit_nowhere_is_refused():
    greedy = replace(APART, server=Demand(30.0, 5.0))
    with pytest.raises(InputError, match="needs 1 parameter servers of 30 CPUs each"):
        check_jobs([Job("a", 0.0, 1, 60.0, profile=greedy)], uniform_cluster(4, 8), "jobs.csv")


def test_plans_that_starve_servers_are_refused():
    starved = Allocation((Share("GPU-0", 2, 2, 4.0, 30.0),))
    yard = Yard(uniform_cluster(1, 8), lambda snapshot: Plan({"a": starved}))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 2, 60.0, profile=APART)))
    with pytest.raises(PlanError, match="less on GPU-0 than its workers and servers there need"):
        yard.decide(0.0)


def test_servers_that_move_restart_the_job():
    """Same workers, other servers: the job has to stop and start again."""
    places = iter([("GPU-0", 1, 1), ("GPU-0", 1, 0)])

    def decide(snapshot):
        node, gpus, servers = next(places)
        shares = [Share(node, gpus, servers, 2.0 + servers, 10.0 + 5 * servers)]
        if not servers:
            shares.append(Share("GPU-1", 0, 1, 1.0, 5.0))
        return Plan({"a": Allocation(tuple(shares))})

    yard = Yard(uniform_cluster(2, 8), decide)
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 1, 60.0, profile=APART)))
    yard.handle(DecisionDue(0.0))
    (stop,) = yard.handle(DecisionDue(1.0))
    assert type(stop).__name__ == "Stop"


def test_what_servers_hold_does_not_feed_the_workers():
    """The input pipeline runs on the workers' CPUs alone."""
    hungry = replace(APART, input=Input(cpu_s_per_sample=0.01))
    model, job = SpeedModel(uniform_cluster(1, 8)), Job("a", 0.0, 2, 60.0, profile=hungry)
    held = Allocation((Share("GPU-0", 2, 2, 2 * 2.0 + 2 * 1.0, 30.0),))
    assert model.rate(job, held) == pytest.approx(4.0 / 0.01)


def test_servers_elsewhere_are_reached_over_the_network():
    model, job = SpeedModel(uniform_cluster(2, 8)), Job("a", 0.0, 2, 60.0, profile=APART)
    beside = Allocation((Share("GPU-0", 2, 2, 6.0, 30.0),))
    away = Allocation((Share("GPU-0", 2, 0, 4.0, 20.0), Share("GPU-1", 0, 2, 2.0, 10.0)))
    assert model.rate(job, away) < model.rate(job, beside)


def test_a_duration_means_one_server_for_each_worker():
    """A job with a duration runs exactly that long with what it asks for."""
    for profile in (TOGETHER, APART):
        result = checked(uniform_cluster(1, 8), [Job("a", 0.0, 4, 120.0, profile=profile)])
        assert result.summary()["avg_jct_s"] == pytest.approx(120.0)


def test_tuning_leaves_them_what_they_ask_for():
    jobs = [Job("a", 0.0, 2, 60.0, profile=APART), Job("b", 0.0, 2, 60.0)]
    for tune in ("tune", "opt", "greedy"):
        result = checked(uniform_cluster(1, 8), jobs, f"fifo(fill=greedy)+{tune}")
        (share,) = next(c.allocation for c in result.story_of("a") if c.allocation).shares
        assert (share.cpus, share.memory_gb) == (6.0, 30.0)


def test_split_evenly():
    assert evenly(7, [2, 2, 3]) == [2, 2, 3]
    assert sorted(evenly(2, [2, 2, 2, 2])) == [0, 0, 1, 1]
    assert evenly(5, [8]) == [5]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_all_servers_are_seated_within_the_room_there_is(data):
    count = data.draw(st.integers(1, 5))
    nodes = tuple(
        Node(f"n{i}", "GPU", data.draw(st.integers(1, 4)), data.draw(st.floats(1, 20)), 100.0)
        for i in range(count)
    )
    table = NodeTable(Cluster("c", nodes))
    free, demand = Room.all_of(table), Demand(data.draw(st.floats(0.1, 4.0)), 1.0)
    on = data.draw(st.integers(0, count - 1))
    workers = [Share(f"n{on}", 1, 0, 0.5, 1.0)]
    request = Request(Job("a", 0.0, 1, 1.0), 1, -1, 0.5, 1.0, data.draw(st.integers(1, 12)), demand)
    shares = with_servers(request, workers, free, table)
    room = [
        int(np.floor((n.cpus - (0.5 if i == on else 0.0)) / demand.cpus + 1e-7)) for i, n in enumerate(nodes)
    ]
    if shares is None:
        assert sum(room) < request.servers
        return
    assert sum(s.servers for s in shares) == request.servers
    for share in shares:
        assert share.cpus <= nodes[table.index[share.node]].cpus + 1e-6
        assert share.servers <= room[table.index[share.node]] + 1


def test_workers_leave_the_node_that_only_servers_fit_on():
    nodes = (Node("many", "GPU", 4, 5.0, 100.0), Node("one", "GPU", 1, 6.0, 100.0))
    profile = replace(TOGETHER, worker=Demand(1.0, 1.0), server=Demand(6.0, 1.0))
    held = started(Job("a", 0.0, 1, 60.0, profile=profile), Cluster("two", nodes))
    assert [share[:3] for share in held.shares] == [("many", 1, 0), ("one", 0, 1)]


def test_the_fastest_gpus_come_first_for_them_too():
    nodes = (Node("slow", "K80", 2, 16.0, 100.0), Node("fast", "V100", 4, 16.0, 100.0))
    cluster = Cluster("two", nodes, {"K80": GpuType("K80", 0.2), "V100": GpuType("V100", 1.0)})
    assert started(Job("a", 0.0, 1, 60.0, profile=APART), cluster).shares[0].node == "fast"


def test_servers_may_cost_nothing():
    free = replace(APART, server=Demand(0.0, 0.0))
    job = Job("a", 0.0, 1, 60.0, profile=free, min_gpus=1, max_gpus=4)
    for size in ("fixed", "optimus", "smd", "doubling"):
        assert started(job, uniform_cluster(1, 4), f"fifo+{size}").servers >= 1
