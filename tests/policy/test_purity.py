"""A decision is a function of the snapshot: of nothing else, and it leaves nothing behind but caches.

`python bench/purity.py` does the same with as many random combinations as you like.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from runpy import run_path

import pytest

import purity_cases as look
import stage_cases
from policy_cases import nodes_of, snapshot_of
from purity_cases import PLAIN, TYPED, Looks, look_at_a_run, moments, plan_of, random_scene, through_a_file
from stage_cases import BY_TYPE, EACH, VALUES, names_in, random_policy, values_of, ways
from trainyard.core.events import JobCancelled, JobSubmitted, ProgressReported
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.allocation import Plan
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.parameters import parameters_of
from trainyard.policy.place.pack import Pack
from trainyard.policy.registry import ENTRIES, Entry
from trainyard.policy.tune.proportional import Proportional
from trainyard.state.beliefs import Learned

COMMAND = Path(__file__).resolve().parents[2] / "bench" / "purity.py"
OTHERS = ["fifo+spread", "pack(consolidate=require)", "tiresias", "srtf+tune"]


def random_policies(count):
    draw, found = Random(1), []
    while len(found) < count:
        policy = random_policy(draw)
        try:
            parse_policy(policy)
        except InputError:
            continue
        found.append(policy)
    return found


def looked_at(policy, other, tmp_path, numbers=(4, 9)):
    """Look at a simulated run on one GPU type, and at a live one on two, by then with jobs that wait."""
    looks = Looks(policy, other, tmp_path / "snapshot.json")
    jobs = 5 if names_in([policy]) & names_in(BY_TYPE) else 10  # these solve programs, again and again
    for shape, live in ((PLAIN, False), (TYPED, True)):
        draw = Random(f"{policy} {live}")
        look_at_a_run(
            looks, random_scene(draw, shape, jobs), draw, live, numbers.__contains__, max(numbers) + 1
        )
    return looks


@pytest.mark.parametrize("policy", [*EACH, *random_policies(8)])
def test_a_decision_is_a_function_of_the_snapshot(policy, tmp_path):
    looks = looked_at(policy, Random(policy).choice(OTHERS), tmp_path)
    assert looks.found == []
    assert looks.compared[look.FILE] >= 2


def test_every_stage_of_the_registry_is_looked_at():
    assert names_in(EACH) == set(ENTRIES)


def test_every_parameter_of_the_registry_is_drawn():
    known = {
        (e.name, n): values_of(n, kind) for e in ENTRIES.values() for n, kind in parameters_of(e.make).items()
    }
    assert [which for which, values in known.items() if not values] == []
    assert set(VALUES) <= {name for _, name in known}
    for way in (way for name in ENTRIES for way in ways(name)):
        parse_policy(way)


# -- what used to be wrong --------------------------------------------------------------------------------


def test_one_policy_does_not_block_the_head_for_another():
    """pack(consolidate=require) refuses two GPUs on two nodes; spread takes them, whoever looked before."""
    held = {"a": {"n0": 3}, "b": {"n1": 3}}
    jobs = [Job("a", 0.0, 3, 90.0), Job("b", 0.0, 3, 90.0), Job("head", 0.0, 2, 90.0)]
    view = snapshot_of(nodes_of(4, 4), jobs, held, 1.0)
    assert parse_policy("pack(consolidate=require)").decide(view).changes == {}
    on_fork, live = (plan_of(parse_policy("fifo+spread"), each)[0] for each in (view.fork(), view))
    assert live == on_fork
    assert [job_id for job_id, _ in live] == ["head"]


REMEMBER = [
    "gavel(round_s=30)",
    "gavel(objective=ftf,round_s=30)",
    "sia(round_s=20)",
    "ftf",
    "las(threshold_gpu_s=50:400)",
    "srtf+doubling(mode=explore,explore_s=20)",
    "srtf+optimus(mode=learn,explore_s=20)",
]


@pytest.mark.parametrize("policy", REMEMBER)
def test_what_a_policy_remembers_of_jobs_survives_a_file(policy, tmp_path):
    """These go by what happened before: time on each GPU type, contention, service, speeds and losses."""
    chosen, draw, changes = parse_policy(policy), Random(7), 0
    for _, view in moments(random_scene(draw, TYPED), chosen, draw, lambda number: number % 4 == 3, most=40):
        expected = plan_of(chosen, view)
        assert plan_of(parse_policy(policy), through_a_file(view, tmp_path / "s.json")) == expected
        changes += len(expected[0])
    assert changes


def test_a_fit_is_kept_for_the_losses_that_it_was_made_of():
    """Another job of the same name tells other losses, but as many, and the last one is the same."""
    yard = Yard(uniform_cluster(1, 8), lambda snapshot: Plan())
    for start_s, first in ((0.0, 10.0), (100.0, 1.2)):
        yard.handle(JobSubmitted(start_s, Job("a", start_s, 1, 1000.0, min_gpus=1, max_gpus=4)))
        for k in range(12):
            loss = 1.0 + (first - 1.0) / (k + 1) if k < 11 else 1.0
            yard.handle(ProgressReported(start_s + k + 1, "a", k + 1.0, loss=loss))
        view = yard.snapshot(start_s + 50.0)
        live, on_fork = (Learned(each, losses=True).left.tolist() for each in (view, view.fork()))
        assert live == on_fork
        yard.handle(JobCancelled(start_s + 60.0, "a"))


# -- impure stages are found out --------------------------------------------------------------------------


class Counting(Pack):
    """Goes by how often it was asked."""

    asked = 0

    def find(self, request, free, nodes, seed):
        self.asked += 1
        return super().find(request, free, nodes, seed) if self.asked % 3 else None


class Keeping(Fifo):
    """Turns the line round if it has looked before."""

    def heads(self, snapshot):
        return iter([snapshot.table.records[row] for row in self.rank(snapshot).tolist()])

    def rank(self, snapshot):
        rows = super().rank(snapshot)
        return rows[::-1] if snapshot.caches.setdefault(self, snapshot.now_s) != snapshot.now_s else rows


class Writing(Fifo):
    """Lets time fly for those that it ranks."""

    def heads(self, snapshot):
        for record in super().heads(snapshot):
            record.attained += 50.0
            snapshot.table.changed.entries.append(record)
            yield record


class Numbering(Fifo):
    """Goes by something that no file knows: how often a job gave something back."""

    def heads(self, snapshot):
        heads = list(super().heads(snapshot))
        return reversed(heads) if snapshot.freed > 0 else iter(heads)


class Lending(Proportional):
    """Hands out plans that it goes on writing."""

    def __init__(self):
        self.plan = {}

    def improve(self, snapshot, draft):
        self.plan.clear()
        self.plan.update(draft.changes)
        draft.changes = self.plan


class Bending(Pack):
    """Writes to what it found, which every later decision finds again."""

    def find(self, request, free, nodes, seed):
        found = super().find(request, free, nodes, seed)
        if found is not None and found.plain:
            found.shares = tuple(share._replace(cpus=0.0) for share in found.shares)
            found.plain = tuple((i, gpus, 0.0, gb) for i, gpus, _, gb in found.plain)
        return found


@pytest.mark.parametrize(
    ("stage", "make", "kinds"),
    [
        ("place", Counting, [look.FORK, look.NEW]),
        ("order", Keeping, [look.FORK, look.DROPPED]),
        ("order", Writing, [look.LEFT_ALONE]),
        ("order", Numbering, [look.FILE]),
        ("tune", Lending, [look.OWNED]),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_impure_stages_are_found_out(stage, make, kinds, monkeypatch, tmp_path):
    monkeypatch.setitem(ENTRIES, "impure", Entry("impure", (stage,), make, "not a function of the snapshot"))
    looks = looked_at("impure", "fifo+spread", tmp_path, range(0, 40, 2))
    assert {found.partition(":")[0] for found in looks.found} >= set(kinds)


def test_a_stage_that_writes_to_what_all_decisions_share_is_found_out(monkeypatch, tmp_path):
    monkeypatch.setitem(ENTRIES, "impure", Entry("impure", ("place",), Bending, "writes to allocations"))
    looks = looked_at("impure", "fifo+spread", tmp_path, range(40))
    assert {found.partition(":")[0] for found in looks.found} >= {look.LEFT_ALONE}


def test_a_policy_that_leaves_traces_for_others_is_found_out(monkeypatch, tmp_path):
    monkeypatch.setitem(ENTRIES, "impure", Entry("impure", ("order",), Writing, "writes to the records"))
    looks = looked_at("las", "impure", tmp_path, range(0, 40, 2))
    assert {found.partition(":")[0] for found in looks.found} >= {look.LEFT_ALONE, look.LOOKED}


@pytest.mark.parametrize(("make", "code"), [(Fifo, 0), (Numbering, 1)])
def test_the_command_draws_new_stages_and_tells_by_its_exit_code(make, code, monkeypatch, capsys):
    """Only this stage is left to be drawn; what differs is named with the options that repeat it."""
    known = {"drawn": Entry("drawn", ("order",), make, "new")}
    monkeypatch.setattr(stage_cases, "ENTRIES", known)
    monkeypatch.setattr(stage_cases, "STAGES", ("order",))
    monkeypatch.setitem(ENTRIES, "drawn", known["drawn"])
    monkeypatch.setattr(sys, "argv", ["purity.py", "--seed", "3", "--combinations", "2"])
    monkeypatch.setattr(sys, "path", sys.path.copy())
    assert run_path(str(COMMAND))["main"]() == code
    out = capsys.readouterr().out
    assert f"policies) of 1 of {len(ENTRIES)} stages" in out
    assert ("DIFFERS (--seed 3 --only" in out) == bool(code)
