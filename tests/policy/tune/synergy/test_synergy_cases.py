"""Agreement with the public Synergy simulator (OSDI'22 artifact) on its own workloads.

Theirs works in rounds of 300 s, rounds completions up to the round, loses fractional iterations, restarts for
nothing and knows two speeds of a job: proportional and best-case. Its cases are in tests/cases/synergy.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
import pytest

from cases import case as read
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.by_key import KeyOrder
from trainyard.policy.policy import Policy
from trainyard.reproduce.synergy.workload import Workload, synergy_cluster, synergy_jobs
from trainyard.sim.clock import Simulator
from trainyard.state.jobs import Column

REPLAYED = ["static_100", "dynamic_100", "multigpu_0", "multigpu_1"]
ORDERS = {"FIFO": "fifo(fill=greedy)", "SRTF": "srtf", "LAS": "las"}
WINDOW = range(4000, 5000)  # the jobs that count in the dynamic cases
DRAWN = 6000  # more than ever arrived before those had finished
THEIR_NAMES = {"resnet18": "res18", "resnet50": "res50", "deepspeech2": "deepspeech"}


class EarlierArrivalsFirst(KeyOrder):
    """What the Synergy simulator calls FIFO: every round, earlier arrivals take the GPUs of later ones."""

    def key(self, snapshot):
        return snapshot.table.column(Column.SEQ)


def case(name):
    return read(f"synergy/{name}")


@cache
def profiles():
    """Per-GPU tables of speeds, in iterations per second; no synchronisation, no restart cost."""
    models = case("models")
    return {name: profile(name, facts, models) for name, facts in models["models"].items()}


def profile(name, facts, models):
    rows = [
        (float(cpus), float(memory_gb), facts["tput"][i][j] / facts["iter_time"])
        for i, cpus in enumerate(models["cpu_axis"])
        for j, memory_gb in enumerate(models["mem_axis_gb"])
    ]
    return Profile(name, scaling="weak", tables=Tables(cpu_memory=tuple(rows)), restart_s=0.0)


def jobs_of(rows):
    """Make jobs of rows of model, arrival, iterations and GPUs."""
    return [
        Job(str(i), float(at_s), gpus, samples=float(iterations * gpus), profile=profiles()[model])
        for i, (model, at_s, iterations, gpus) in enumerate(rows)
    ]


def policy_of(order, tune, preemptive=False):
    policy = parse_policy(f"{ORDERS[order]}+{tune}")
    return Policy("fifo", order=EarlierArrivalsFirst(), tune=policy.tune) if preemptive else policy


def simulated(jobs, servers, policy):
    simulator = Simulator(uniform_cluster(servers), jobs, policy, Rules(round_s=300.0, restart_s=0.0))
    return simulator.run()


# -- traces that are replayed -----------------------------------------------------------------------------


@cache
def average_h(name, servers, order, tune, preemptive=False):
    jobs = jobs_of(case(name)["jobs"])
    result = simulated(jobs, servers, policy_of(order, tune, preemptive))
    assert result.summary()["completed"] == len(jobs)
    return result.summary()["avg_jct_s"] / 3600


@cache
def theirs_h(name, servers, order, tune):
    where = (servers, order, tune)
    results = case(name)["results"]
    return next(r["avg_jct_h"] for r in results if (r["servers"], r["policy"], r["allocation"]) == where)


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
def arriving(name):
    """Make the jobs of the public simulator with our generator, and make sure that they are the same."""
    given = case("open_arrivals")[name]
    speed = SpeedModel(synergy_cluster(given["servers"]))
    rows = [
        (THEIR_NAMES.get(job.model, job.model), int(job.arrival_s), iterations(speed, job), job.gpus)
        for job in synergy_jobs(Workload(DRAWN, given["load_jobs_per_hour"]))
    ]
    lines = "".join(f"{at_s} {model} {count}\n" for model, at_s, count, _ in rows)
    assert hashlib.sha256(lines.encode()).hexdigest() == given[f"sha256_of_{DRAWN}_jobs"]
    return jobs_of(rows)


def iterations(speed, job):
    return int(job.duration_s * speed.reference_rate(job) / job.profile.batch + 1e-6)


@cache
def window_h(name, order, tune):
    """Average JCT of the jobs that count, theirs and ours."""
    given = case("open_arrivals")[name]
    theirs = next(r for r in given["results"] if (r["policy"], r["allocation"]) == (order, tune))
    jobs = arriving(name)[: theirs["jobs_arrived"]]
    outcomes = simulated(jobs, given["servers"], policy_of(order, tune)).outcomes
    jct = dict(zip(outcomes.job_id, outcomes.jct_s.tolist(), strict=True))
    return theirs["avg_jct_h"], float(np.mean([jct[str(i)] for i in WINDOW])) / 3600


@pytest.mark.parametrize(
    ("name", "order"),
    [("c16_single_load0.9", "FIFO"), ("c16_single_load0.9", "SRTF"), ("philly_single_load7", "SRTF")],
)
def test_open_arrivals(name, order):
    their_plain, plain = window_h(name, order, "proportional")
    their_tuned, tuned = window_h(name, order, "tune")
    assert plain == pytest.approx(their_plain, rel=0.03)
    assert tuned <= 1.02 * their_tuned
    assert plain / tuned >= 0.9 * their_plain / their_tuned


# -- single rounds ----------------------------------------------------------------------------------------


def one_round(given, tune):
    """The yard after its first decision about all jobs of a case."""
    yard = Yard(uniform_cluster(given["servers"]), policy_of(given["policy"], tune).decide)
    for job in jobs_of(given["jobs"]):
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(1.0))
    validate(yard)
    return yard


def single_rounds(*allocations):
    """Every first round on an empty cluster that was written down for one of these ways to tune."""
    return [
        {**given, **first, "id": f"{number}/{first['policy']}/{first['allocation']}"}
        for number, given in enumerate(case("one_round")["cases"])
        for first in given["rounds"]
        if first["allocation"] in allocations
    ]


def total_speed(yard, held):
    """Sum of speeds, each relative to that with the proportional share."""
    total = 0.0
    for job_id, allocation in held.items():
        job, each = yard.records[job_id].job, (3.0, 62.5)
        fair = (Share(s.node, s.gpus, 0, s.gpus * each[0], s.gpus * each[1]) for s in allocation.shares)
        total += yard.speed.rate(job, allocation) / yard.speed.rate(job, Allocation(tuple(fair)))
    return total


def their_allocations(given):
    shares = {}
    for job, server, *amounts in given["shares"]:
        shares.setdefault(str(job), []).append(Share(f"GPU-{server}", amounts[0], 0, *amounts[1:]))
    return {job_id: Allocation(tuple(parts)) for job_id, parts in shares.items()}


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
        held = their_allocations(given)
        assert yard.target.keys() == held.keys(), given["id"]
        ours, theirs = total_speed(yard, yard.target), total_speed(yard, held)
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
