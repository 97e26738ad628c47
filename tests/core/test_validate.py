"""Validation sees each of the books that may be wrong."""

from __future__ import annotations

import pytest

from real_cases import Real, on, real
from trainyard.core.events import DecisionDue, JobSubmitted, NodeFailed, PolicyChanged
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import TrainyardError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, NodeTable, uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.state.lifecycle import State


def held(gpus=2, node="GPU-0", cpus=None):
    return Allocation((Share(node, gpus, 0, 3.0 * gpus if cpus is None else cpus, 62.5 * gpus),))


def yard():
    """A yard in which `a` runs with two GPUs, `b` and `c` wait, and GPU-1 is down."""
    made = Yard(uniform_cluster(2, 4), lambda snapshot: Plan({"a": held()}))
    for name in "abc":
        made.handle(JobSubmitted(0.0, Job(name, 0.0, 2, 100.0)))
    made.handle(NodeFailed(0.0, "GPU-1"))
    made.handle(DecisionDue(0.0))
    return made


def lose_a_record(yard):
    del yard.records["c"]


def swap_rows(yard):
    a, b = yard.records["a"], yard.records["b"]
    a.row, b.row = b.row, a.row


def name_another_job(yard):
    yard.table.jobs[0] = yard.table.jobs[1]


def keep_a_copy(yard):
    yard.table.records[2] = yard.table.records[2].copy()


def wait_and_run(yard):
    yard.waiting.add(yard.records["a"])


def forget_to_wait(yard):
    yard.waiting.remove(yard.records["c"])


def swap_places(yard):
    yard.records["b"].seq, yard.records["c"].seq = 3, 2


def end_and_stay(yard):
    yard.records["b"].state = State.DONE


def hold_while_waiting(yard):
    yard.records["b"].occupies = held()


def run_without_holding(yard):
    yard.records["a"].occupies = None


def run_elsewhere(yard):
    yard.records["a"].occupies = held(2, "GPU-0", cpus=1.0)


def give_another_number(yard):
    yard.records["a"].given = 3


def stand_still(yard):
    yard.records["a"].rate = 0.0


def move_while_waiting(yard):
    yard.records["b"].rate = 1.0


def forget_some_gpus(yard):
    yard.free.gpus[0] += 1


def miscount_the_total(yard):
    yard.free.total += 1


def group_wrongly(yard):
    yard.free.levels[0] ^= 1


def forget_some_cpus(yard):
    yard.free.cpus[0] += 1e-3


def forget_some_memory(yard):
    yard.free.memory_gb[0] -= 1e-2


def forget_that_a_node_is_down(yard):
    yard.conditions.closed.clear()


def plan_on_a_node_that_is_down(yard):
    yard.conditions.down.add("GPU-0")


def occupy_more_than_there_is(yard):
    yard.records["b"].state = State.STOPPING
    yard.records["b"].occupies = held(3)
    yard.leaving["GPU-0"] = 1


def hold_other_nodes_by_index(yard):
    on_another = yard.nodes.plain([(1, 2)]).plain
    yard.target["a"] = yard.records["a"].occupies = Allocation(held().shares, on_another)


def take_plain_shares_for_special(yard):
    yard.free.plain = False


def call_a_plain_job_special(yard):
    yard.records["a"].special = True


def request_more(yard):
    yard.table.gpus += 1


def forget_who_asks_for_cpus(yard):
    yard.table.particular += 1


def forget_who_was_resized(yard):
    yard.table.resized -= 1


BROKEN = [
    (request_more, "GPUs that were requested"),
    (forget_who_asks_for_cpus, "jobs that ask for CPUs or memory"),
    (forget_who_was_resized, "jobs of another size than requested"),
    (lose_a_record, "row of c"),
    (swap_rows, "row of a"),
    (name_another_job, "row of b"),
    (keep_a_copy, "row of c"),
    (wait_and_run, "every job waits or has a target"),
    (forget_to_wait, "every job waits or has a target"),
    (swap_places, "waiting jobs are in order of submission"),
    (end_and_stay, "b is over but active"),
    (hold_while_waiting, "b is waiting and holds Allocation"),
    (run_without_holding, "a is running and holds None"),
    (run_elsewhere, "a runs as planned"),
    (give_another_number, "GPUs of a"),
    (stand_still, "rate of a"),
    (move_while_waiting, "rate of b"),
    (forget_some_gpus, "free GPUs add up"),
    (miscount_the_total, "free GPUs add up"),
    (group_wrongly, "nodes are grouped by free GPUs"),
    (forget_some_cpus, "free CPUs add up"),
    (forget_some_memory, "free memory adds up"),
    (forget_that_a_node_is_down, "free GPUs add up"),
    (plan_on_a_node_that_is_down, "nothing is planned on GPU-0, which is down"),
    (hold_other_nodes_by_index, "a holds the same by name and by index"),
    (take_plain_shares_for_special, "whether free GPUs come with their shares"),
    (call_a_plain_job_special, "jobs with CPUs or memory of their own choice"),
    (occupy_more_than_there_is, "no resource is over-allocated"),
]


@pytest.mark.parametrize(("break_", "message"), BROKEN, ids=[b.__name__ for b, _ in BROKEN])
def test_wrong_books_are_seen(break_, message):
    broken = yard()
    validate(broken)
    break_(broken)
    with pytest.raises(TrainyardError, match=f"the yard is inconsistent: {message}"):
        validate(broken)


def test_a_gang_that_is_not_whole_is_seen():
    broken = yard()
    job = Job("a", 0.0, 4, 100.0)
    broken.records["a"].job = broken.table.jobs[0] = job
    with pytest.raises(TrainyardError, match="gang of a is whole"):
        validate(broken)


def test_rounding_is_no_matter():
    rounded = yard()
    rounded.free.cpus[0] += 5e-7
    rounded.free.memory_gb[0] -= 5e-7
    validate(rounded)


def test_a_plan_by_another_table_of_nodes_is_seen():
    """Its indices are those of other nodes, and the yard goes by them."""
    nodes = uniform_cluster(2, 4).nodes
    other = NodeTable(Cluster("turned", nodes[::-1]))
    yard = Yard(Cluster("straight", nodes), lambda snapshot: Plan({"a": other.plain([(0, 4)])}))
    yard.handle(JobSubmitted(0.0, Job("a", 0.0, 4, 10.0)))
    yard.handle(DecisionDue(0.0))
    with pytest.raises(TrainyardError, match="a holds the same by name and by index"):
        validate(yard)


# -- books of real clusters ----------------------------------------------------------------------------------


def real_yard():
    """`run` runs on GPU-0 for tenant t, whose usage is counted; `held` is held."""
    r = Real(real("run", tenant="t"), real("held", hold=True), indices=True, policies=parse_policy)
    r.tell(PolicyChanged(0.0, "fairshare"))
    r.decide(0.0, run=on(n0=4))
    r.tell(DecisionDue(1.0))
    return r.yard


def number_the_parked(yard):
    yard.parked["held"].row = 1


def park_under_another_name(yard):
    yard.parked["other"] = yard.parked.pop("held")


def park_and_wait(yard):
    yard.records["held"] = yard.parked["held"]
    yard.waiting.add(yard.parked["held"])


def park_what_is_over(yard):
    yard.parked["held"].state = State.FAILED


def park_with_processes(yard):
    yard.parked["held"].occupies = on(n1=4)


def park_what_stops_nowhere(yard):
    yard.parked["held"].state = State.STOPPING


def park_what_moves(yard):
    yard.parked["held"].rate = 1.0


def expect_somebody_to_leave(yard):
    yard.leaving["GPU-0"] = 1


def miscount_what_is_up(yard):
    yard.up_gpus += 1


def show_another_count(yard):
    yard.view.up_gpus -= 1


def forget_whose_gpus_these_are(yard):
    del yard.seats.of["run"]


def charge_too_much(yard):
    yard.usage.accounts["t",] = yard.usage.accounts["t",]._replace(gpus=5)


def owe_somebody(yard):
    yard.usage.accounts["t",] = yard.usage.accounts["t",]._replace(gpu_s=-1.0)


BROKEN_REAL = [
    (number_the_parked, "row of held, which is parked"),
    (park_under_another_name, "row of other, which is parked"),
    (park_and_wait, "held is parked and planned"),
    (park_what_is_over, "held is over but parked"),
    (park_with_processes, "held is held and parked"),
    (park_what_stops_nowhere, "held is stopping and parked"),
    (park_what_moves, "rate of held, which is parked"),
    (expect_somebody_to_leave, "jobs that have to leave their nodes"),
    (miscount_what_is_up, "GPUs that are there"),
    (show_another_count, "GPUs that are there"),
    (forget_whose_gpus_these_are, "jobs with GPUs of their own"),
    (charge_too_much, "usage of t"),
    (owe_somebody, "usage of t"),
]


@pytest.mark.parametrize(("break_", "message"), BROKEN_REAL, ids=[b.__name__ for b, _ in BROKEN_REAL])
def test_wrong_books_of_real_clusters_are_seen(break_, message):
    broken = real_yard()
    validate(broken)
    break_(broken)
    with pytest.raises(TrainyardError, match=f"the yard is inconsistent: {message}"):
        validate(broken)
