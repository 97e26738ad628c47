"""What each policy of a comparison adds: its idea, its paper, and the plain policy it is held against."""

from __future__ import annotations

import pytest

import trainyard as ty
from trainyard.report.added import added, added_table
from trainyard.report.html import render_report

CLUSTER = ty.uniform_cluster(1, 8)
LONG = [ty.Job("a", 0.0, 8, 100.0), ty.Job("b", 10.0, 8, 10.0), ty.Job("c", 20.0, 8, 10.0)]
ELASTIC = [ty.Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=8)]


def said(policies, jobs=LONG):
    return dict(added(ty.compare(CLUSTER, jobs, policies)))


def test_a_plain_policy_adds_nothing():
    assert said(["fifo", "easy", "srtf", "fifo+fixed"]) == {}
    assert added_table(ty.compare(CLUSTER, LONG, ["fifo", "srtf"])) is None


def test_a_stage_is_held_against_its_order_alone():
    # fifo: 100, 100, 100 s; srtf stops a: 120, 10, 10 s
    sentence = said(["fifo", "srtf", "fifo+tune", "srtf+tune"])["fifo+tune"]
    assert sentence.startswith("CPUs and memory by need")
    assert sentence.endswith("(Synergy, OSDI'22): average JCT as fifo.")


def test_without_an_order_of_its_own_it_is_held_against_the_best_plain_policy():
    assert said(["fifo", "srtf", "tiresias"])["tiresias"].endswith(" than srtf.")
    assert " srtf" in said(["fifo", "srtf", "market"])["market"]


def test_a_worse_policy_says_so():
    assert "average JCT 114% longer than srtf." in said(["srtf", "spread"])["spread"]


def test_a_better_policy_says_by_how_much():
    sentence = said(["srtf", "srtf+doubling"], ELASTIC)["srtf+doubling"]
    assert sentence.endswith("(Capes et al., NeurIPS'18 workshop): average JCT 75% shorter than srtf.")


def test_several_ideas_are_also_held_against_the_best_of_their_parts():
    policies = ["srtf", "srtf+tune", "srtf+doubling", "srtf+doubling+tune"]
    sentence = said(policies, ELASTIC)["srtf+doubling+tune"]
    papers = "(Capes et al., NeurIPS'18 workshop; Synergy, OSDI'22)"
    assert sentence == (
        f"doubling and tune together {papers}: average JCT 75% shorter than srtf, as srtf+doubling."
    )


def test_with_nothing_to_compare_with_only_the_idea_is_told():
    assert said(["smd"])["smd"].endswith("a knapsack of utilities (SMD, INFOCOM'21).")


def test_runs_that_completed_nothing_are_not_comparable():
    results = ty.compare(CLUSTER, LONG, ["srtf", "srtf+tune"], until_s=5.0)
    assert dict(added(results))["srtf+tune"].endswith("average JCT not comparable with srtf.")


@pytest.mark.parametrize("policy", ["fifo", "srtf+tune"])
def test_the_report_tells_it_too(policy):
    pytest.importorskip("plotly")
    page = render_report(ty.compare(CLUSTER, LONG, ["srtf", policy] if policy != "fifo" else ["srtf", "las"]))
    assert ("Synergy, OSDI&#x27;22" in page) == (policy != "fifo")
