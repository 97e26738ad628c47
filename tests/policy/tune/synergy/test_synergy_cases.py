"""Agreement with the public Synergy simulator (OSDI'22 artifact) on its own workloads.

Theirs works in rounds of 300 s, rounds completions up to the round, loses fractional iterations, restarts for
nothing and knows two speeds of a job: proportional and best-case. Its cases are in ../shared/cases/synergy.
"""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from conftest import SHARED
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.by_key import KeyOrder
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.state.jobs import Column

FOLDER = SHARED / "cases" / "synergy"
REPLAYED = ["static_100", "dynamic_100", "multigpu_0", "multigpu_1"]
ORDERS = {"FIFO": "fifo(fill=greedy)", "SRTF": "srtf", "LAS": "las"}
WINDOW = range(4000, 5000)  # the jobs that count in the dynamic cases


class EarlierArrivalsFirst(KeyOrder):
    """What the Synergy simulator calls FIFO: every round, earlier arrivals take the GPUs of later ones."""

    def key(self, snapshot):
        return snapshot.table.column(Column.SEQ)


@pytest.fixture(autouse=True)
def cases(shared):
    """Skip everything if the cases are not there."""


@cache
def case(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


@cache
def profiles():
    """Per-GPU tables of speeds, in iterations per second; no synchronisation, no restart cost."""
    models = case("models")
    return {name: profile(name, facts, models) for name, facts in models["skus"]["3"].items()}


def profile(name, facts, models):
    rows = [
        (float(cpus), float(memory_gb), facts["tput"][i][j] / facts["iter_time"])
        for i, cpus in enumerate(models["cpu_axis"])
        for j, memory_gb in enumerate(models["mem_axis_gb"])
    ]
    return Profile(name, scaling="weak", tables=Tables(cpu_memory=tuple(rows)), restart_s=0.0)


def job_of(job):
    known = profiles()[job["model"]]
    work = float(job["iterations"] * job["gpus"])
    return Job(str(job["id"]), float(job["arrival_s"]), job["gpus"], samples=work, profile=known)


def policy_of(order, tune, preemptive=False):
    policy = parse_policy(f"{ORDERS[order]}+{tune}")
    return Policy("fifo", order=EarlierArrivalsFirst(), tune=policy.tune) if preemptive else policy


def simulated(jobs, servers, policy):
    simulator = Simulator(uniform_cluster(servers), jobs, policy, Rules(round_s=300.0, restart_s=0.0))
    return simulator.run()


# -- traces that are replayed -----------------------------------------------------------------------------


@cache
def average_h(name, servers, order, tune, preemptive=False):
    jobs = [job_of(job) for job in case(name)["jobs"]]
    result = simulated(jobs, servers, policy_of(order, tune, preemptive))
    assert result.summary()["completed"] == len(jobs)
    return result.summary()["avg_jct_s"] / 3600


@cache
def theirs_h(name, servers, order, tune):
    result = next(
        r
        for r in case(name)["results"]
        if (r.get("servers", servers), r["policy"], r["allocation"]) == (servers, order, tune)
    )
    return result["avg_jct_h"]


def others(name, order):
    """Whether FIFO differs: a gang that did not fit may take the GPUs of later arrivals in the next round."""
    return order == "FIFO" and name.startswith("multigpu")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("name", REPLAYED)
def test_replayed_traces(name, servers, order):
    """Proportional within 3%, tune at most 2% above theirs, and a gain of at least 90% of theirs.

    With single-GPU jobs preemption never shows: whoever came earlier is running already.
    """
    where = (name, servers, order)
    preemptive = others(name, order)
    plain, tuned = (average_h(*where, tune, preemptive) for tune in ("proportional", "tune"))
    assert plain == pytest.approx(theirs_h(*where, "proportional"), rel=0.03)
    assert tuned <= 1.02 * theirs_h(*where, "tune")
    assert plain / tuned >= 0.9 * theirs_h(*where, "proportional") / theirs_h(*where, "tune")


@pytest.mark.parametrize("servers", [2, 4])
@pytest.mark.parametrize("name", ["multigpu_0", "multigpu_1"])
def test_gangs_under_a_fifo_that_stops_nobody(name, servers):
    """Ours leaves running jobs alone, so small jobs that slipped by keep their GPUs: better on average.

    Up to 31% with these traces. `test_replayed_traces` shows that this is the whole difference: with an order
    that lets earlier arrivals take the GPUs of later ones, as theirs does every round, 3% remain.
    """
    theirs = theirs_h(name, servers, "FIFO", "proportional")
    assert 0.65 * theirs <= average_h(name, servers, "FIFO", "proportional") <= theirs


@pytest.mark.parametrize("name", REPLAYED)
def test_opt_is_no_worse_than_their_tune(name):
    where = (name, 2, "SRTF")
    assert average_h(*where, "opt") <= 1.02 * theirs_h(*where, "tune")


# -- open arrivals, the thousand jobs 4000 to 4999 ----------------------------------------------------------


@cache
def window_h(name, order, tune):
    given = case(name)
    columns = given["jobs"]
    arrived = {(r["policy"], r["allocation"]): r["jobs_arrived"] for r in given["results"]}
    jobs = [
        job_of({"id": i, "model": given["models"][model], "arrival_s": arrival, "iterations": n, "gpus": 1})
        for i, (arrival, model, n) in enumerate(
            zip(columns["arrival_s"], columns["model"], columns["iterations"], strict=True)
        )
    ]
    outcomes = simulated(jobs[: arrived[order, tune]], given["servers"], policy_of(order, tune)).outcomes
    jct = dict(zip(outcomes.job_id, outcomes.jct_s.tolist(), strict=True))
    return float(np.mean([jct[str(i)] for i in WINDOW])) / 3600


@pytest.mark.parametrize(
    ("name", "order"),
    [("c16_single_load0.9", "FIFO"), ("c16_single_load0.9", "SRTF"), ("philly_single_load7", "SRTF")],
)
def test_open_arrivals(name, order):
    given = case(name)
    plain, tuned = (window_h(name, order, tune) for tune in ("proportional", "tune"))
    theirs = [theirs_h(name, given["servers"], order, tune) for tune in ("proportional", "tune")]
    assert plain == pytest.approx(theirs[0], rel=0.03)
    assert tuned <= 1.02 * theirs[1]
    assert plain / tuned >= 0.9 * theirs[0] / theirs[1]


# -- single rounds ----------------------------------------------------------------------------------------


def one_round(given, tune):
    """The yard after its first decision about all jobs of a case."""
    yard = Yard(uniform_cluster(given["servers"]), policy_of(given["policy"], tune).decide)
    for job in given["jobs"]:
        yard.handle(JobSubmitted(0.0, job_of(job)))
    yard.handle(DecisionDue(1.0))
    validate(yard)
    return yard


def single_rounds(*allocations):
    cases = case("one_round_allocations")["cases"]
    return [given for given in cases if given["allocation"] in allocations and given["error"] is None]


def total_speed(yard, held):
    """Sum of speeds, each relative to that with the proportional share."""
    total = 0.0
    for job_id, allocation in held.items():
        job, each = yard.records[job_id].job, (3.0, 62.5)
        fair = (Share(s.node, s.gpus, 0, s.gpus * each[0], s.gpus * each[1]) for s in allocation.shares)
        total += yard.speed.rate(job, allocation) / yard.speed.rate(job, Allocation(tuple(fair)))
    return total


def their_allocations(given):
    return {
        job_id: Allocation(
            tuple(
                Share(f"GPU-{server}", round(part["gpu"]), 0, part["cpu"], part["mem"])
                for server, part in expected["alloc"].items()
            )
        )
        for job_id, expected in given["expected"].items()
    }


def cuts_a_gang(given):
    """Whether a gang that fits on one server spans several."""
    held = their_allocations(given).values()
    return any(len(allocation.shares) > 1 and allocation.gpus <= 8 for allocation in held)


def test_single_rounds_run_the_same_jobs_at_least_as_fast_in_sum():
    """Except where they cut gangs to mix them with others, which costs nothing there; ours stay whole.

    Their shares are judged by the same tables as ours: they credit some jobs with more than those say.
    """
    rounds = single_rounds("tune", "tune_consolidated")
    assert len(rounds) == 108
    sums = []
    for given in rounds:
        yard = one_round(given, "tune")
        assert yard.target.keys() == given["expected"].keys(), given["id"]
        ours, theirs = (total_speed(yard, held) for held in (yard.target, their_allocations(given)))
        assert ours >= theirs - 1e-6 or cuts_a_gang(given), given["id"]
        sums.append((ours, theirs))
    ours, theirs = np.array(sums).T
    assert np.count_nonzero(ours < theirs - 1e-6) <= 2
    assert ours.sum() > 1.05 * theirs.sum()


def test_single_rounds_of_proportional_are_the_same():
    for given in single_rounds("proportional"):
        ours, theirs = one_round(given, "proportional").target, their_allocations(given)
        assert ours.keys() == theirs.keys(), given["id"]
        for job_id in ours:
            held = [np.sum([share[1:] for share in a[job_id].shares], axis=0) for a in (ours, theirs)]
            np.testing.assert_allclose(*held, err_msg=given["id"])


def test_single_rounds_of_opt_are_at_least_as_good_as_those_of_tune():
    for given in single_rounds("tune")[::3]:
        tuned, best = (one_round(given, tune) for tune in ("tune", "opt"))
        assert best.target.keys() == tuned.target.keys()
        assert total_speed(best, best.target) >= total_speed(tuned, tuned.target) - 1e-6, given["id"]
