"""Markets on random mixed clusters: every plan feasible, every job served, same seed same bytes."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import PROFILES, checked
from market_cases import feasible, made, optimum, total_s
from stage_cases import ORDERS, TUNES, ways
from trainyard.cli.output import jobs_csv
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.policy.types.market.category import search_all, search_sampled
from trainyard.policy.types.market.closed_form import ClosedForm
from trainyard.policy.types.market.menus import Lists, all_configs, shared_menu
from trainyard.policy.types.market.prices import trade
from trainyard.sim.failures import Failure

STAGES = [*ways("market"), "market(beta=0.5)"]
POLICIES = [
    *STAGES,
    *("+".join(two) for two in product(ORDERS, STAGES)),
    *("+".join(two) for two in product(STAGES, TUNES)),
]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
TYPES = {"V100": GpuType("V100", 1.0), "P100": GpuType("P100", 0.6), "K80": GpuType("K80", 0.25)}


@st.composite
def clusters(draw):
    nodes = []
    for i in range(draw(st.integers(1, 5))):
        gpus = draw(st.sampled_from([1, 2, 4]))
        nodes.append(Node(f"n{i}", draw(st.sampled_from(list(TYPES))), gpus, 3.0 * gpus, 50.0 * gpus))
    return Cluster("test", tuple(nodes), TYPES)


@st.composite
def jobs_for(draw, cluster):
    per_type = {t: sum(n.gpus for n in cluster.nodes if n.gpu_type == t) for t in TYPES}
    jobs = []
    for i in range(draw(st.integers(1, 12))):
        gpu_type = draw(st.sampled_from(["", "", "", *(t for t in TYPES if per_type[t])]))
        gpus = draw(st.integers(1, min(per_type[gpu_type] if gpu_type else max(per_type.values()), 6)))
        elastic = draw(st.booleans())
        profile = draw(st.sampled_from(PROFILES))
        special = (profile is None or not profile.apart) and draw(st.integers(0, 4)) == 0
        jobs.append(
            Job(
                f"j{i}",
                draw(st.sampled_from([0.0, 0.0, 10.0, 55.5, 200.0])),
                gpus,
                duration_s=draw(st.sampled_from([0.01, 7.5, 60.0, 300.0, 1e5])),
                gpu_type=gpu_type,
                min_gpus=draw(st.integers(1, gpus)) if elastic else None,
                max_gpus=draw(st.integers(gpus, gpus + 40)) if elastic else None,
                cpus=draw(st.sampled_from([1.0, 2.0, 3.0])) * gpus if special else None,
                memory_gb=draw(st.sampled_from([1.0, 50.0])) * gpus if special else None,
                profile=profile,
                weight=draw(st.sampled_from([1.0, 1.0, 2.0])),
                checkpoint_s=draw(st.sampled_from([0.0, 20.0, 1e9])),
            )
        )
    return jobs


@st.composite
def runs(draw):
    cluster = draw(clusters())
    options = {
        "round_s": draw(st.sampled_from([None, None, None, 60.0])),
        "restart_s": draw(st.sampled_from([None, 0.0, 30.0])),
        "seed": draw(st.integers(0, 3)),
    }
    jobs = draw(jobs_for(cluster))
    if options["round_s"]:  # a job that takes days has too many rounds
        jobs = [dataclasses.replace(job, duration_s=min(job.duration_s, 300.0)) for job in jobs]
    return cluster, jobs, draw(st.sampled_from(POLICIES)), options


@QUICK
@given(runs(), st.data())
def test_all_plans_are_feasible_and_every_job_ends(run, data):
    cluster, jobs, policy, options = run
    times = sorted(data.draw(st.lists(st.floats(0.0, 400.0), max_size=4)))
    nodes = [n.node_id for n in cluster.nodes]
    failures = [Failure(t, data.draw(st.sampled_from(nodes)), data.draw(st.floats(0.1, 90.0))) for t in times]
    result = checked(cluster, jobs, policy, failures, **options)  # raises if a book is wrong after any event
    assert result.summary()["completed"] == len(jobs)


@QUICK
@given(runs())
def test_same_seed_same_bytes(run):
    cluster, jobs, policy, options = run
    first, second = (checked(cluster, jobs, policy, **options) for _ in range(2))
    assert jobs_csv(first) == jobs_csv(second)
    assert list(first.story) == list(second.story)


@st.composite
def markets(draw):
    """Small markets with everything that is awkward."""
    jobs, types = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    capacity = draw(
        st.lists(st.integers(0, 4), min_size=types, max_size=types).filter(lambda c: sum(c) >= jobs)
    )
    speed = st.sampled_from([0.0, 1.0, 1.0, 3.0, 10.0])
    rho = [draw(st.lists(speed, min_size=types, max_size=types)) for _ in range(jobs)]
    batch = [draw(st.sampled_from([1.0, 2.0, 64.0])) for _ in range(jobs)]
    iterations = [draw(st.sampled_from([0.0, 1.0, 1e2, 1e2, 1e6])) for _ in range(jobs)]
    gradient = [draw(st.sampled_from([0.0, 1e7, 1e9, 1e11])) for _ in range(jobs)]
    return made(rho, batch, iterations, gradient, capacity, most=sum(capacity))


def possible(case):
    """Whether everybody can have a worker that it can run on: a flow, by trying."""
    from scipy.optimize import linear_sum_assignment

    slots = np.repeat(np.arange(len(case.capacity)), case.capacity)
    useless = (case.rho[:, slots] <= 0).astype(float)
    return useless[linear_sum_assignment(useless)].sum() == 0


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(markets().filter(possible))
def test_awkward_markets(case):
    """Tests 6 and 8 where types are useless, jobs identical, work or gradients nothing, batches small."""
    best = optimum(case)
    lists = Lists(
        case.costs, [shared_menu(case.costs, case.jobs, all_configs(case.capacity, case.rings.most))]
    )
    for pricing in (lists, ClosedForm(case.costs, case.rings)):
        found = trade(case.costs, pricing)
        assert feasible(case, found.mix)
        assert found.cost == pytest.approx(total_s(case, found.mix), abs=1e-6)
        assert found.bound <= best * (1 + 1e-6) + 1e-6
    assert trade(case.costs, lists, exact=True).cost == pytest.approx(best, rel=1e-5, abs=1e-6)
    for found in (
        search_all(case.costs, case.rings),
        search_sampled(case.costs, case.rings, 20, np.random.default_rng(0)),
    ):
        assert feasible(case, found.mix)
