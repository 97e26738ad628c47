"""Reservations of a cluster file in the core: in force once, in snapshots, forks and states."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from real_cases import Real
from trainyard.api import known_models
from trainyard.core.events import DecisionDue, JobSubmitted, NodeJoined, NodeLeft, ReservationMade
from trainyard.core.instructions import DecideAt, Start, Stop
from trainyard.core.real.due import fire
from trainyard.core.restore import answer, restore
from trainyard.core.saving import snapshot_record
from trainyard.core.twins import fork, state_of, yard_of
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.files.snapshot import load_snapshot
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator
from trainyard.state.record import Record

TWO = uniform_cluster(2, 4)
WINDOWS = (
    Reservation("r1", 100.0, 300.0, ("GPU-0",)),
    Reservation("r2", 200.0, 400.0, gpus=4, tenant="vision"),
)
KEPT = replace(TWO, reservations=WINDOWS)
SETTLED = (WINDOWS[0], replace(WINDOWS[1], nodes=("GPU-1",)))
JOBS = [
    Job("a", 0.0, 4, 250.0),
    Job("b", 0.0, 4, 500.0, tenant="vision"),
    Job("c", 20.0, 2, 70.0, tenant="vision"),
    Job("d", 30.0, 1, 90.0, preemptible=False),
]


def closed(view):
    return {view.nodes.ids[i] for i in getattr(view.free, "closed", ())}


def at(cluster, now_s, policy="srtf"):
    """A run before its first decision at this time or later."""
    run = Simulator(cluster, JOBS, parse_policy(policy))
    while run.advance():
        if run.now_s >= now_s:
            return run
        run.decide()


def written(view, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(snapshot_record(view)))
    return load_snapshot(path, known_models())


def test_a_yard_keeps_them_from_the_beginning():
    yard = Yard(KEPT, parse_policy("fifo").decide)
    assert tuple(yard.conditions.reservations.values()) == SETTLED
    assert yard.timers.due_s == 100.0
    assert not yard.cluster.reservations  # nobody can keep them twice
    assert Yard(TWO, parse_policy("fifo").decide).view.bars is None


def test_a_yard_outside_of_a_simulation_stops_and_starts_on_time():
    yard = Yard(KEPT, parse_policy("fifo").decide)
    assert yard.handle(JobSubmitted(0.0, JOBS[0])) == [DecideAt(100.0)]
    yard.handle(DecisionDue(0.0))
    done = yard.handle(DecisionDue(100.0))
    assert [type(do) for do in done[:1]] == [Stop]
    assert yard.target["a"].shares[0].node == "GPU-1"
    validate(yard)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "srtf+optimus", "srtf+tune"])
@pytest.mark.parametrize("now_s", [0.0, 30.0, 100.0, 150.0, 200.0, 300.0, 380.0])
def test_snapshot_files_carry_them(tmp_path, policy, now_s):
    run = at(KEPT, now_s, policy)
    yard, view = run.yard, run.yard.snapshot(run.now_s)
    spec = written(view, tmp_path)
    read, _ = restore(spec)
    validate(read)
    assert read.conditions.reservations == {r.name: replace(r, gpus=0) for r in _left(view.now_s)}
    assert closed(read.view) == closed(view)
    assert (read.view.free.gpus, read.up_gpus) == (view.free.gpus, yard.up_gpus)
    assert list(read.target.items()) == list(view.target.items())
    chosen = parse_policy(policy)
    assert chosen.decide(read.snapshot(view.now_s)).changes == chosen.decide(view).changes


def _left(now_s):
    return [r for r in SETTLED if r.to_s > now_s]


def test_nodes_in_maintenance_are_not_written_as_down(tmp_path):
    yard = at(KEPT, 150.0).yard
    assert not yard.view.up[0]
    assert snapshot_record(yard.snapshot(150.0))["down"] == []
    yard.node_failed(160.0, "GPU-1")
    assert snapshot_record(yard.snapshot(160.0))["down"] == ["GPU-1"]


def test_a_plan_moves_who_is_in_the_way(tmp_path):
    """A snapshot as users write it: a job holds what is reserved for others."""
    held = {"GPU-0": {"gpus": 4}}
    cluster = {
        "nodes": [{"count": 2, "gpus": 4}],
        "reservations": [{"nodes": ["GPU-0"], "from_s": 5, "to_s": 50, "tenant": "vision"}],
    }
    jobs = [
        {"job_id": "a", "arrival_s": 0, "gpus": 4, "duration_s": 90, "allocation": held},
        {"job_id": "b", "arrival_s": 1, "gpus": 4, "duration_s": 90},
        {"job_id": "v", "arrival_s": 2, "gpus": 2, "duration_s": 90, "tenant": "vision"},
    ]
    path = tmp_path / "s.json"
    expected = {
        4.0: {"a": "GPU-0", "b": "GPU-1"},
        5.0: {"a": "GPU-1", "v": "GPU-0"},
        50.0: {"a": "GPU-0", "b": "GPU-1"},
    }
    for now_s, planned in expected.items():
        path.write_text(json.dumps({"now_s": now_s, "cluster": cluster, "jobs": jobs}))
        policy = parse_policy("fifo")
        told = answer(load_snapshot(path), lambda view, policy=policy: policy.decide(view, explain=True))
        assert {job_id: next(iter(gets["nodes"])) for job_id, gets in told.plan.items()} == planned
    path.write_text(json.dumps({"now_s": 5.0, "cluster": cluster, "jobs": jobs}))
    told = answer(load_snapshot(path), lambda view: parse_policy("srtf").decide(view, explain=True))
    assert set(told.waiting) == {"b"}


def test_a_plan_says_who_waits_for_a_reservation(tmp_path):
    cluster = {
        "nodes": [{"count": 1, "gpus": 4}],
        "reservations": [{"gpus": 4, "from_s": 0, "to_s": 50, "tenant": "vision"}],
    }
    path = tmp_path / "s.json"
    jobs = [{"job_id": "a", "arrival_s": 0, "gpus": 2, "duration_s": 90}]
    path.write_text(json.dumps({"now_s": 4.0, "cluster": cluster, "jobs": jobs}))
    told = answer(load_snapshot(path), lambda view: parse_policy("fifo").decide(view, explain=True))
    assert told.waiting == {
        "a": "needs 2 GPUs; 4 are free, but not where no reservation keeps them for others"
    }


def test_a_job_that_must_not_be_stopped_keeps_what_it_has_before_a_window(tmp_path):
    cluster = {"nodes": [{"count": 1, "gpus": 4}], "reservations": [{"gpus": 4, "from_s": 50, "to_s": 60}]}
    job = {"job_id": "a", "arrival_s": 0, "gpus": 2, "duration_s": 90, "preemptible": False}
    path = tmp_path / "s.json"
    policy = parse_policy("fifo")
    for held, planned in (({}, []), ({"allocation": {"GPU-0": {"gpus": 2}}}, ["a"])):
        path.write_text(json.dumps({"now_s": 4.0, "cluster": cluster, "jobs": [job | held]}))
        assert list(answer(load_snapshot(path), policy.decide).plan) == planned


@pytest.mark.parametrize("now_s", [0.0, 100.0, 150.0, 200.0, 300.0])
def test_forks_and_states_do_not_keep_them_twice(now_s):
    yard, decide = at(KEPT, now_s).yard, parse_policy("srtf").decide
    twins = [fork(yard, decide), yard_of(json.loads(json.dumps(state_of(yard))), decide)]
    for twin in twins:
        validate(twin)
        assert twin.conditions == yard.conditions
        assert twin.timers.entries() == yard.timers.entries()
        assert twin.view.bars.windows == yard.view.bars.windows
    for event in (DecisionDue(now_s), DecisionDue(now_s + 150.0), DecisionDue(now_s + 400.0)):
        done = [[do for do in twin.handle(event) if isinstance(do, Start | Stop)] for twin in twins]
        assert done[0] == done[1]
        assert [twin.view.bars is None for twin in twins] == [event.time_s >= 400.0] * 2


def test_nodes_of_other_names_are_kept_under_their_names_in_the_file(tmp_path):
    odd = Cluster(
        "odd",
        (Node("anna", "V100", 4, 12.0, 64.0), Node("berta", "V100", 4, 12.0, 64.0)),
        reservations=(Reservation("r1", 10.0, 300.0, ("berta",)),),
    )
    yard = Yard(odd, parse_policy("fifo").decide)
    yard.handle(DecisionDue(10.0))
    read, _ = restore(written(yard.snapshot(10.0), tmp_path))
    assert closed(read.view) == {"V100-1"}


def test_whoever_holds_reserved_gpus_in_a_plan_of_ones_own_is_refused():
    yard = Yard(KEPT, lambda _: None)
    yard.submit(0.0, JOBS[0])
    fire(yard, 250.0)
    yard.view.now_s = 250.0
    record = yard.records["a"]
    for node in ("GPU-0", "GPU-1"):
        assert yard.view.intrudes(record, Allocation((Share(node, 4, 0, 12.0, 250.0),))) == node


def test_a_reservation_holds_for_whatever_has_the_name_of_the_node():
    yard = Yard(uniform_cluster(2, 4), parse_policy("fifo").decide)
    yard.handle(ReservationMade(0.0, Reservation("r", 0.0, 100.0, nodes=("GPU-1",), tenant="t")))
    yard.handle(NodeLeft(1.0, "GPU-1"))
    yard.handle(NodeJoined(2.0, Node("GPU-1", "GPU", 8, 24.0, 500.0)))
    assert yard.view.bars.of(Record(JOBS[0], 1, -1, (1.0, 1.0, 1.0), 0.0, 0.0), 3.0) == 0b100


def test_stages_look_again_when_a_reservation_is_made_begins_and_ends():
    r = Real(nodes=2)
    seen = [(r.yard.view.freed, r.yard.view.version)]
    for event in (
        ReservationMade(1.0, Reservation("r", 5.0, 9.0, ("GPU-0",), "t")),
        DecisionDue(5.0),
        DecisionDue(9.0),
    ):
        r.tell(event)
        seen.append((r.yard.view.freed, r.yard.view.version))
    for before, after in pairwise(seen):
        assert after[0] > before[0]
        assert after[1] > before[1]
