"""The reproduction of DL2 without learning: its rules, the bound, and one tiny pass through all parts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import checked, one_by_one
from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import (
    KINDS,
    Setting,
    dl2_cluster,
    dl2_job,
    measured,
    validation_traces,
)
from trainyard.learn.settings.ring_jobs import RING_SETTINGS, RingSetting
from trainyard.policy.policy import Policy
from trainyard.policy.size.lookahead import Lookahead
from trainyard.policy.stages import Size
from trainyard.reproduce import study
from trainyard.reproduce.dl2 import allreduce, baselines, learned, online, sweeps
from trainyard.reproduce.dl2 import paper as dl2
from trainyard.reproduce.dl2.rules import (
    RULES,
    AllTheyCanHave,
    OneWorker,
    ProfiledOptimus,
    TetrisTasks,
    bound_slots,
)
from trainyard.reproduce.dl2.runs import Group, Run, rows, scenario
from trainyard.reproduce.dl2.theirs import AVERAGE_JCT, BOUND
from trainyard.reproduce.findings import write_findings
from trainyard.state.beliefs import Told

SMALL = Setting(nodes=3, jobs=5, arrivals=5, epochs=200, slot_s=300.0)
KIND = {kind.model: kind for kind in KINDS}


class Watched(Size):
    """Notes what another size stage answers first."""

    def __init__(self, size):
        self.size, self.first = size, None

    def shapes(self, snapshot, ranked):
        answer = self.size.shapes(snapshot, ranked)
        if self.first is None and ranked.size:
            self.first = list(zip(*(column.tolist() for column in answer.shapes[:2]), strict=True))
        return answer


def first_sizes(size, models, nodes=2, most=3, epochs=(1000,)):
    """Sizes of jobs that come together."""
    jobs = [
        dl2_job(
            Setting(nodes, 1, 3, epochs[i % len(epochs)], 300.0, most), KIND[m], str(i), 0, measured(KIND[m])
        )
        for i, m in enumerate(models)
    ]
    watched = Watched(size)
    checked(dl2_cluster(nodes), jobs, Policy("watched", size=watched), round_s=300.0)
    return watched.first


def test_the_first_takes_all_it_may_have():
    # Two nodes have room for four pairs: a pair takes 4 of 16 CPUs.
    assert first_sizes(AllTheyCanHave(), ["resnet-50"] * 3) == [(3, 3), (1, 1), (0, 0)]


def test_one_worker_and_servers_in_turn():
    assert first_sizes(OneWorker(), ["resnet-50", "dssm", "wlm"]) == [(1, 2), (1, 2), (1, 1)]
    assert first_sizes(OneWorker(), ["resnet-50"], most=3) == [(1, 3)]
    assert first_sizes(OneWorker(), ["wlm"] * 5) == [(1, 1)] * 4 + [(0, 0)]


def test_tetris_prefers_what_fits_best_and_then_the_shortest():
    assert first_sizes(TetrisTasks(), ["wlm", "wlm"], epochs=(4000, 100)) == [(1, 1), (3, 3)]
    # A task that uses GPUs as well as CPUs is better aligned with an empty node.
    sizes = dict(zip("cg", first_sizes(TetrisTasks(), ["dssm", "wlm"], most=4), strict=True))
    assert sizes["c"][0] + sizes["g"][0] == 4
    assert sizes["g"][0] > sizes["c"][0]


def test_profiled_optimus_believes_about_the_truth():
    """Its fits of eight noisy runs lie within a tenth or so of the true speeds, but not on them."""
    seen = []

    class Compare(Size):
        def shapes(self, snapshot, ranked):
            stage = ProfiledOptimus()
            answer = stage.shapes(snapshot, ranked)
            for row in ranked.tolist():
                name = snapshot.table.jobs[row].profile.name
                true = Told(snapshot).surface(row)[1:, 1:]
                seen.append(np.median(np.abs(stage.surfaces[name][1:, 1:] / true - 1)))
            return answer

    jobs = [dl2_job(SMALL, kind, kind.model, 0, measured(kind)) for kind in KINDS]
    checked(dl2_cluster(8), jobs, Policy("compare", size=Compare()), round_s=300.0)
    assert min(seen) > 0
    assert max(seen) < 0.25


def test_the_bound_is_that_of_a_job_alone():
    """Look-ahead finds the best size of a job that has the cluster for itself."""
    kind = KIND["seq2seq"]
    setting = Setting(20, 1, 3, 1000)
    job = dl2_job(setting, kind, "a", 0, measured(kind))
    cluster = dl2_cluster(setting.nodes)
    bound = bound_slots(Scenario(cluster, [job], setting.slot_s))
    result = checked(cluster, [job], Policy("ahead", size=Lookahead(ahead=16)), round_s=setting.slot_s)
    assert result.outcomes.jct_s[0] / setting.slot_s == pytest.approx(bound)


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_beats_the_bound(rule):
    outcome = Run(rule, SMALL, 0).carry_out()
    assert outcome.bound * (1 - 1e-9) <= outcome.jct < 50
    assert outcome.makespan >= outcome.jct


@pytest.mark.parametrize("policy", allreduce.POLICIES)
def test_no_policy_beats_the_bound_on_all_reduce_jobs(policy):
    outcome = Run(policy, RingSetting(nodes=2, jobs=10), 0).carry_out()
    assert outcome.bound * (1 - 1e-9) <= outcome.jct


def test_traces_are_held_out():
    drawn = {tuple((j.model, j.arrival_s) for j in scenario(SMALL, i).jobs) for i in range(3)}
    drawn |= {tuple((j.model, j.arrival_s) for j in jobs) for jobs in validation_traces(SMALL, 3)}
    assert len(drawn) == 6
    assert scenario(SMALL, 2, validation=True).jobs == validation_traces(SMALL, 3)[2]


def test_sweeps_draw_only_their_kinds():
    settings = sweeps.sweeps(quick=False)
    models = {job.model for job in scenario(settings["kinds of jobs", "last four"], 0).jobs}
    assert models == {kind.model for kind in sweeps.UNSEEN}
    assert len(settings) == len(set(settings.values())) + 1  # 16 nodes and all kinds are the same


def test_rows_compare_means():
    group = Group(("small",), SMALL, 2)
    found = dict(zip(group.runs("a"), [(2.0, 9.0, 1.0), (4.0, 11.0, 2.0)], strict=True))
    found |= dict(zip(group.runs("b"), [(3.0, 9.0, 1.0), (9.0, 9.0, 2.0)], strict=True))
    assert rows(group, ["a"], ("b", "a"), found) == [
        ["small", "a", 3.0, 1.0, 10.0, 50.0, 0.0, 0.5],
        ["small", BOUND, 1.5, None, None, 75.0, 50.0, 1.0],
    ]


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "QUICK_TRACES", {"testbed": 1})
        patch.setattr(sweeps, "BASE", SMALL)
        patch.setitem(RING_SETTINGS, "ring16", RingSetting(2, 10))
        patch.setattr(study, "in_parallel", one_by_one)
        for part in (learned, online):  # trainings have tests of their own
            patch.setattr(part, "find_spec", lambda _: None)
        told = []
        findings = dl2.reproduce(True, told.append)
        assert told == list(range(1, dl2.steps(True) + 1))
    return findings


def test_every_part_has_its_table_and_picture(tiny, tmp_path):
    by_name = {table.name: table for table in tiny.tables}
    assert set(by_name) == {"dl2-learned", "dl2-baselines", "dl2-validation", "dl2-sweeps", "dl2-allreduce"}
    assert set(tiny.pictures) == {"dl2-baselines.png", "dl2-sweeps.png", "dl2-allreduce.png"}
    assert all(png.startswith(b"\x89PNG") for png in tiny.pictures.values())
    write_findings(tmp_path, tiny)
    written = json.loads((tmp_path / "results.json").read_text())
    for name in ("dl2-baselines", "dl2-sweeps", "dl2-allreduce"):
        assert all(row["bound / JCT"] <= 1 for row in written[name] if row["avg JCT"] is not None)
    assert [row["rule"] for row in written["dl2-baselines"]] == [*RULES, BOUND, "DL2"]


def test_theirs_only_beside_the_same_traces(tiny):
    (table,) = [table for table in tiny.tables if table.name == "dl2-validation"]
    assert all(row["public simulator"] is None for row in table.records())
    assert set(AVERAGE_JCT["testbed"]) <= {*RULES, BOUND}
