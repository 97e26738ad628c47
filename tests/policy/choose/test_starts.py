"""Starts without preemption: the three fill rules by hand, and what must not change meanwhile."""

from __future__ import annotations

from functools import partial

import pytest

from policy_cases import drafted, nodes_of, snapshot_of, two_types, yard_of
from trainyard.core.events import DecisionDue, JobSubmitted
from trainyard.model.job import Job
from trainyard.policy.choose.starts import start_alone, start_waiting
from trainyard.policy.grammar import parse_policy
from trainyard.policy.place.pack import Pack
from trainyard.policy.policy import Policy


def job(name, gpus, duration_s=100.0, **more):
    return Job(name, 0.0, gpus, duration_s=duration_s, **more)


def started(policy, cluster, jobs, held=None):
    return list(starts(parse_policy(policy), snapshot_of(cluster, jobs, held)))


def starts(policy, snapshot):
    return drafted(partial(start_waiting, policy), snapshot)


IN_TURN = [job("a", 2), job("b", 4), job("c", 1), job("d", 2), job("e", 1)]


def test_strict_stops_at_the_first_that_does_not_fit():
    assert started("fifo", nodes_of(4), IN_TURN) == ["a"]


def test_greedy_passes_it():
    assert started("fifo(fill=greedy)", nodes_of(4), IN_TURN) == ["a", "c", "e"]


def test_easy_passes_it_without_delay():
    """b starts when a ends, at 100: only who ends by then may pass."""
    jobs = [*IN_TURN[:2], job("late", 1, 101.0), job("d", 2, 100.0), job("e", 1, 10.0)]
    assert started("fifo(fill=easy)", nodes_of(4), jobs) == ["a", "d"]


def test_the_shortest_first():
    jobs = [job("long", 2, 90.0), job("tie", 1, 10.0), job("tied", 1, 10.0), job("mid", 1, 50.0)]
    assert started("sjf", nodes_of(4), jobs) == ["tie", "tied", "mid"]
    assert started("sjf", nodes_of(3), jobs) == ["tie", "tied", "mid"]
    assert started("sjf", nodes_of(2), jobs) == ["tie", "tied"]


def test_easy_by_length_lets_pass_who_comes_behind_the_head():
    """The head, of 20 seconds, waits for the job that runs until 40; `late` would delay it."""
    jobs = [job("runs", 3, 40.0), job("head", 4, 20.0), job("late", 1, 50.0), job("mid", 1, 35.0)]
    assert started("sjf(fill=easy)", nodes_of(4), jobs, {"runs": {"n0": 3}}) == ["mid"]


def test_room_that_a_refused_job_does_not_get_is_there_for_the_next():
    jobs = [job("runs", 1), job("head", 4), job("late", 3, 200.0), job("quick", 3, 50.0)]
    assert started("fifo(fill=easy)", nodes_of(4), jobs, {"runs": {"n0": 1}}) == ["quick"]


def test_a_refused_job_does_not_count_as_taken_on_its_node():
    """`late` would sit on n0; as it must wait, `quick` finds n0 free and shares it with nobody."""
    jobs = [job("runs", 2), job("head", 4), job("late", 2, 200.0), job("quick", 2, 50.0)]
    snapshot = snapshot_of(nodes_of(2, 2), jobs, {"runs": {"n1": 2}})
    chosen = starts(parse_policy("fifo(fill=easy)"), snapshot)
    assert {name: a.workers for name, a in chosen.items()} == {"quick": (("n0", 2),)}


def test_the_snapshot_stays_as_it_is():
    snapshot = snapshot_of(nodes_of(4), [job("a", 1), job("b", 2), job("c", 1)])
    assert list(starts(parse_policy("fifo"), snapshot)) == ["a", "b", "c"]
    assert snapshot.free.gpus == [4]
    assert snapshot.free.total == 4
    assert snapshot.free.cpus == [12.0]


def test_no_gpu_is_given_twice():
    snapshot = snapshot_of(nodes_of(2, 2), [job("a", 1), job("b", 2), job("c", 1)])
    chosen = starts(parse_policy("fifo"), snapshot)
    assert {name: a.workers for name, a in chosen.items()} == {
        "a": (("n0", 1),),
        "b": (("n1", 2),),
        "c": (("n0", 1),),
    }


class Counted(Pack):
    """Pack, and who asked it."""

    def __init__(self, consolidate="prefer"):
        super().__init__(consolidate)
        self.asked = []

    def find(self, request, free, nodes, seed):
        self.asked.append(request.job.job_id)
        return super().find(request, free, nodes, seed)


def test_who_asks_for_what_was_not_found_is_not_looked_for_again():
    """Two are free, but on two nodes: nobody of the first kind fits, and c asks for the same as b."""
    place = Counted("require")
    policy = Policy(order=parse_policy("fifo(fill=greedy)").order, place=place)
    jobs = [job("r0", 1), job("r1", 1), job("b", 2), job("c", 2), job("d", 1)]
    snapshot = snapshot_of(nodes_of(2, 2), jobs, {"r0": {"n0": 1}, "r1": {"n1": 1}})
    assert list(starts(policy, snapshot)) == ["d"]
    assert place.asked == ["b", "d"]


def test_another_gpu_type_is_another_request():
    jobs = [job("runs", 2, gpu_type="V100"), job("fast", 1, gpu_type="V100"), job("slow", 1, gpu_type="K80")]
    assert started("fifo(fill=greedy)", two_types(), jobs, {"runs": {"v": 2}}) == ["slow"]


def test_a_blocked_head_is_looked_for_again_when_something_ended():
    place = Counted("require")
    policy = Policy(place=place)
    jobs = [job("r0", 1), job("r1", 1), job("head", 2)]
    snapshot = snapshot_of(nodes_of(2, 2), jobs, {"r0": {"n0": 1}, "r1": {"n1": 1}})
    for freed, asked in ((0, 1), (0, 1), (1, 2), (1, 2)):
        snapshot.freed = freed
        assert starts(policy, snapshot) == {}
        assert place.asked == ["head"] * asked


def test_a_new_head_is_looked_for_though_nothing_ended():
    """Under sjf a shorter job may come to the front; what was found of the other says nothing of it."""
    place = Counted("require")
    policy = Policy(order=parse_policy("sjf").order, place=place)
    jobs = [job("r0", 1), job("r1", 1), job("head", 2)]
    yard = yard_of(nodes_of(2, 2), jobs, {"r0": {"n0": 1}, "r1": {"n1": 1}})
    assert starts(policy, yard.snapshot(0.0)) == {}
    yard.handle(JobSubmitted(0.0, job("short", 1, 10.0)))
    assert list(starts(policy, yard.snapshot(0.0))) == ["short"]
    assert place.asked == ["head", "short"]  # and nothing is free for the head that was not before


@pytest.mark.parametrize("policy", ["fifo", "fifo(fill=greedy)", "fifo(fill=easy)", "sjf"])
def test_nothing_runs_that_waits_for_a_full_cluster(policy):
    yard = yard_of(nodes_of(2), [job("runs", 2), job("waits", 1)], {"runs": {"n0": 2}}, policy)
    assert yard.handle(DecisionDue(1.0)) == []


@pytest.mark.parametrize(
    ("jobs", "found"),
    [([], []), ([job("a", 4)], ["a"]), ([job("a", 5)], []), ([job("a", 2, cpus=13.0)], [])],
)
def test_the_only_one_that_waits_starts_if_it_fits(jobs, found):
    """4 GPUs are free, 2 on each node, and with them 6 CPUs on each."""
    runs = job("runs", 2, cpus=6.0)
    snapshot = snapshot_of(nodes_of(4, 2), [runs, *jobs], {"runs": {"n0": 2}})
    assert list(start_alone(parse_policy("fifo"), snapshot)) == found
