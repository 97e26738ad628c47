"""Plans against capacity: what is refused, with which words, and what just fits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import APART
from trainyard.core.check import check_plan, plain_start, plain_turns
from trainyard.core.events import DecisionDue, JobSubmitted, NodeFailed
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import PlanError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, Node, NodeTable
from trainyard.model.job import Job

CLUSTER = Cluster(
    "three",
    (Node("v0", "V100", 4, 12, 64), Node("v1", "V100", 2, 6, 32), Node("p0", "P100", 4, 12, 64)),
)
JOBS = (
    Job("rigid", 0.0, 4, 10.0),
    Job("elastic", 0.0, 2, 10.0, min_gpus=1, max_gpus=3),
    Job("picky", 0.0, 2, 10.0, gpu_type="V100"),
    Job("apart", 0.0, 2, samples=100.0, profile=APART),
    Job("small", 0.0, 1, 10.0),
)


def share(node, gpus, cpus=None, memory_gb=None, servers=0):
    return Share(
        node,
        gpus,
        servers,
        3.0 * gpus if cpus is None else cpus,
        16.0 * gpus if memory_gb is None else memory_gb,
    )


def hold(*shares):
    return Allocation(shares)


def snapshot_with(**running):
    """A snapshot in which these jobs have these allocations."""
    yard = Yard(CLUSTER, lambda snapshot: Plan(running))
    for job in JOBS:
        yard.handle(JobSubmitted(0.0, job))
    yard.handle(DecisionDue(0.0))
    return yard.snapshot(0.0)


EMPTY = snapshot_with()
REFUSED = [
    ({"ghost": hold(share("v0", 1))}, "job ghost is not active and cannot be planned"),
    ({"ghost": None}, "job ghost is not active and cannot be planned"),
    ({"rigid": hold(share("v0", 3))}, "job rigid gets 3 GPUs but takes 4 to 4"),
    ({"rigid": hold(share("v0", 4), share("v1", 1))}, "job rigid gets 5 GPUs but takes 4 to 4"),
    ({"elastic": hold(share("v0", 4))}, "job elastic gets 4 GPUs but takes 1 to 3"),
    ({"elastic": hold(share("v0", 0))}, "job elastic gets 0 GPUs but takes 1 to 3"),
    ({"elastic": hold()}, "job elastic gets 0 GPUs but takes 1 to 3"),
    ({"rigid": hold(share("v0", 2), share("v0", 2))}, "job rigid: a node is named twice"),
    (
        {"rigid": hold(share("v0", 1), share("v1", 2), share("v0", 1))},
        "job rigid: a node is named twice",
    ),
    ({"small": hold(share("v9", 1))}, "job small: there is no node v9"),
    ({"picky": hold(share("p0", 2))}, "job picky needs V100 but gets GPUs of p0"),
    ({"picky": hold(share("v0", 1), share("p0", 1))}, "job picky needs V100 but gets GPUs of p0"),
    ({"small": hold(share("v0", 2), share("v1", -1))}, "job small gets less than nothing on v1"),
    ({"small": hold(share("v0", 1, servers=-1))}, "job small gets less than nothing on v0"),
    ({"small": hold(share("v0", 1, cpus=-1e-5))}, "job small gets less than nothing on v0"),
    ({"small": hold(share("v0", 1, memory_gb=-1e-5))}, "job small gets less than nothing on v0"),
    (
        {"apart": hold(share("v0", 2, cpus=2.99, memory_gb=24.0, servers=2))},
        "job apart gets less on v0 than its workers and servers there need",
    ),
    (
        {"apart": hold(share("v0", 2, cpus=3.0, memory_gb=23.99, servers=2))},
        "job apart gets less on v0 than its workers and servers there need",
    ),
    ({"rigid": hold(share("v1", 4))}, "node v1 is over-allocated by 2 GPUs, 6 CPUs, 32 GB of memory"),
    ({"small": hold(share("v0", 1, cpus=12.5))}, "node v0 is over-allocated by 0.5 CPUs"),
    ({"small": hold(share("v0", 1, memory_gb=65.0))}, "node v0 is over-allocated by 1 GB of memory"),
    (
        {"rigid": hold(share("v0", 4, cpus=8.0, memory_gb=8.0)), "small": hold(share("v0", 1, 1.0, 1.0))},
        "node v0 is over-allocated by 1 GPUs",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(changes, message):
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
        check_plan(EMPTY, changes)


ALLOWED = [
    {},
    {"rigid": None},
    {"rigid": hold(share("v0", 4))},
    {"elastic": hold(share("v0", 1))},
    {"elastic": hold(share("v0", 3))},
    {"elastic": hold(share("v0", 1), share("p0", 2))},
    {"picky": hold(share("v0", 1), share("v1", 1))},
    {"picky": hold(share("v0", 2), share("p0", 0, servers=1))},  # a server needs no GPU of that type
    {"small": hold(share("v0", 1, cpus=0.0, memory_gb=0.0))},
    {"small": hold(share("v0", 1, cpus=12.0, memory_gb=64.0))},
    {"small": hold(share("v0", 1, cpus=12.0 + 5e-7, memory_gb=64.0 + 5e-7))},  # rounding is no matter
    {"apart": hold(share("v0", 2, cpus=3.0, memory_gb=24.0, servers=2))},
    {"apart": hold(share("v0", 2, 2.0, 16.0), share("p0", 0, 1.0, 8.0, servers=2))},
    {"rigid": hold(share("v0", 4)), "picky": hold(share("v1", 2)), "small": hold(share("p0", 1))},
]


@pytest.mark.parametrize("changes", ALLOWED, ids=str)
def test_what_just_fits(changes):
    check_plan(EMPTY, changes)


def test_a_job_without_servers_apart_may_get_less_than_its_profile_says():
    beside = Job("beside", 0.0, 2, samples=100.0, profile=replace(APART, server=None))
    yard = Yard(CLUSTER, lambda snapshot: Plan())
    yard.handle(JobSubmitted(0.0, beside))
    check_plan(yard.snapshot(0.0), {"beside": hold(share("v0", 2, cpus=0.1, memory_gb=0.1))})


FULL = snapshot_with(
    rigid=hold(share("v0", 4)), picky=hold(share("v1", 2)), elastic=hold(share("p0", 3)), small=None
)


def test_what_a_job_holds_is_not_free():
    with pytest.raises(PlanError, match="node v0 is over-allocated by 1 GPUs, 3 CPUs, 16 GB of memory"):
        check_plan(FULL, {"small": hold(share("v0", 1))})


def test_what_a_job_gives_back_is_free_for_another():
    check_plan(FULL, {"rigid": None, "small": hold(share("v0", 1))})
    check_plan(FULL, {"small": hold(share("v0", 1)), "rigid": None})  # in any order
    check_plan(FULL, {"rigid": hold(share("p0", 4)), "elastic": hold(share("v0", 3)), "small": None})


def test_what_a_job_gives_back_is_free_once():
    changes = {"rigid": None, "small": hold(share("v0", 1)), "elastic": hold(share("v0", 3))}
    check_plan(FULL, changes)
    with pytest.raises(PlanError, match="node p0 is over-allocated by 1 GPUs"):
        check_plan(FULL, {"rigid": hold(share("p0", 4)), "elastic": hold(share("p0", 1))})


def test_a_job_that_stays_may_not_be_counted_out():
    with pytest.raises(PlanError, match="node v0 is over-allocated by 3 GPUs"):
        check_plan(FULL, {"elastic": hold(share("v0", 3))})


def test_other_cpus_for_a_job_that_runs():
    check_plan(FULL, {"elastic": hold(share("p0", 3, cpus=12.0, memory_gb=64.0))})
    with pytest.raises(PlanError, match="node p0 is over-allocated by 1 CPUs"):
        check_plan(FULL, {"elastic": hold(share("p0", 3, cpus=13.0))})


def test_nothing_fits_on_a_node_that_is_down():
    yard = Yard(CLUSTER, lambda snapshot: Plan())
    yard.handle(JobSubmitted(0.0, JOBS[-1]))
    yard.handle(NodeFailed(0.0, "v1"))
    with pytest.raises(PlanError, match="job small may not begin to use node v1"):
        check_plan(yard.snapshot(0.0), {"small": hold(share("v1", 1))})


# -- plain shares of nodes, which are looked at more quickly -----------------------------------------------

NODES = NodeTable(CLUSTER)


def plainly(changes):
    """The same plan, with everything that may be plain made by the table of nodes; None if not all may be."""
    made = {}
    for job_id, a in changes.items():
        if a is not None and any(share.node not in NODES.index for share in a.shares):
            return None
        made[job_id] = a and NODES.plain([(NODES.index[share.node], share.gpus) for share in a.shares])
    return made if made == changes and all(a is None or a.plain for a in made.values()) else None


def decided(changes, running=None):
    """A yard that makes this plan the target."""
    plans = [running or {}, changes]
    yard = Yard(CLUSTER, lambda snapshot: Plan(plans.pop(0)))
    for job in JOBS:
        yard.handle(JobSubmitted(0.0, job))
    for _ in range(2):
        yard.decide(0.0)
    return yard


PLAINLY_REFUSED = [(plain, message) for c, message in REFUSED if (plain := plainly(c))]
PLAINLY_ALLOWED = [plain for changes in ALLOWED if (plain := plainly(changes)) is not None]


def test_most_of_the_tables_can_be_said_plainly():
    assert (len(PLAINLY_REFUSED), len(PLAINLY_ALLOWED)) == (12, 8)


@pytest.mark.parametrize(("changes", "message"), PLAINLY_REFUSED, ids=[m for _, m in PLAINLY_REFUSED])
def test_what_is_refused_plainly(changes, message):
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
        decided(changes)


def test_less_than_nothing_is_refused_where_there_would_be_room():
    small = {"small": NODES.plain([(0, 1)])}
    with pytest.raises(PlanError, match="job picky gets less than nothing on v0"):
        decided({"picky": NODES.plain([(0, -2), (1, 4)])}, small)
    with pytest.raises(PlanError, match="job rigid gets less than nothing on v1"):
        decided({"rigid": NODES.plain([(0, 2), (1, -2), (2, 4)])}, small)


@pytest.mark.parametrize("changes", PLAINLY_ALLOWED, ids=str)
def test_what_just_fits_plainly(changes):
    yard = decided(changes)
    assert yard.target == {job_id: a for job_id, a in changes.items() if a is not None}
    validate(yard)


@pytest.mark.parametrize(
    ("job_id", "parts", "quickly"),
    [
        ("rigid", [(0, 4)], True),
        ("rigid", [(1, 4)], False),  # it has two
        ("rigid", [(0, 3)], False),
        ("picky", [(0, 2)], True),
        ("picky", [(2, 2)], False),
        ("apart", [(0, 2)], False),  # it has needs of its own
    ],
)
def test_a_job_that_just_starts_is_looked_at_quickly(job_id, parts, quickly):
    record, given = EMPTY.table.of[job_id], NODES.plain(parts)
    assert plain_start(EMPTY, record, given) is quickly
    assert (plain_turns(EMPTY, {job_id: given}) == ([], [(record, given)])) is quickly


def test_jobs_that_take_turns_are_looked_at_quickly():
    running = {"rigid": NODES.plain([(0, 4)]), "small": NODES.plain([(2, 1)])}
    view = snapshot_with(**running)
    rigid, picky = view.table.of["rigid"], view.table.of["picky"]
    here = NODES.plain([(0, 1), (1, 1)])
    assert plain_turns(view, {"rigid": None, "picky": here}) == ([rigid], [(picky, here)])
    assert plain_turns(view, {"picky": here}) is None
    assert plain_turns(view, {"picky": None}) is None  # it waits already
    assert not plain_start(view, view.table.of["small"], NODES.plain([(2, 1)]))  # it runs already


def test_nothing_is_quick_where_free_gpus_may_lack_their_share():
    view = snapshot_with(small=hold(share("v0", 1, cpus=6.0)))
    assert not plain_start(view, view.table.of["rigid"], NODES.plain([(2, 4)]))
    assert plain_turns(view, {"rigid": NODES.plain([(2, 4)])}) is None


parts_of_nodes = st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 4)), min_size=1, max_size=3)
any_changes = st.dictionaries(
    st.sampled_from([*(job.job_id for job in JOBS), "ghost"]),
    st.none() | parts_of_nodes.map(NODES.plain),
    min_size=1,
    max_size=3,
)
RUNNING = [
    EMPTY,
    snapshot_with(rigid=NODES.plain([(0, 4)]), small=NODES.plain([(1, 1)])),
    snapshot_with(picky=NODES.plain([(0, 1), (1, 1)]), elastic=NODES.plain([(2, 3)])),
    snapshot_with(small=hold(share("p0", 1, cpus=9.0))),
]


@settings(max_examples=300)
@given(st.sampled_from(RUNNING), any_changes)
def test_what_is_taken_quickly_would_have_passed(view, changes):
    sure = plain_turns(view, changes) is not None
    for job_id, given_ in changes.items():
        if len(changes) == 1 and given_ is not None and job_id in view.table.of:
            sure |= plain_start(view, view.table.of[job_id], given_)
    if sure:
        check_plan(view, changes)
