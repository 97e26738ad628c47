"""Decisions that a learned policy left to another one are counted, and shown where the user looks."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import trainyard as ty
from trainyard.report.added import added
from trainyard.report.fallback import fallback, who_decided
from trainyard.report.html import render_report
from trainyard.report.table import comparison_table

CLUSTER = ty.uniform_cluster(1, 8)
# All-reduce jobs: the weights only know jobs with parameter servers.
JOBS = [ty.Job("a", 0.0, 2, 100.0, min_gpus=1, max_gpus=8), ty.Job("b", 10.0, 1, 50.0)]


@pytest.fixture(scope="module")
def results():
    return ty.compare(CLUSTER, JOBS, ["srtf", "srtf+dl2"])


def test_decisions_left_to_another_stage_are_counted(results):
    plain, learned = results
    assert plain.summary()["fallback_share"] == 0
    assert plain.left_to == {}
    decisions = learned.summary()["decisions"]
    assert learned.left_to == {"drf": decisions - 1}  # the last one finds no job
    assert learned.summary()["fallback_share"] == (decisions - 1) / decisions


def test_a_count_is_of_one_run(results):
    again = ty.simulate(CLUSTER, JOBS, "srtf+dl2")
    assert again.left_to == results[1].left_to


def test_they_are_told_in_words(results):
    left = f"{results[1].left_to['drf']} of {results[1].summary()['decisions']} decisions left to drf"
    assert fallback(results[1]) == left
    assert f"; {left}: average JCT" in dict(added(results))["srtf+dl2"]
    assert fallback(results[0]) == ""


def test_the_report_says_at_the_top_who_decided(results):
    left = fallback(results[1])
    said = f"Not all decisions are those of the policy named. srtf+dl2: {left}."
    assert who_decided(results) == said
    assert f'<p class="note">{said}</p>' in render_report(results)
    assert who_decided(results[:1]) == ""
    assert 'class="note">Not all' not in render_report(results[:1])


def test_the_table_has_a_column_for_them_only_if_there_are_any(results):
    assert "left to" in printed(results)
    assert "left to" not in printed(results[:1])


def printed(results):
    out = io.StringIO()
    table = comparison_table([result.summary() for result in results], width=100)
    Console(file=out, width=100, color_system=None).print(table)
    return out.getvalue()


class Unwilling(ty.Size):
    """Gives nobody anything."""

    def shapes(self, snapshot, ranked):
        return ty.Chosen(ty.Shapes(np.zeros_like(ranked)))


def test_rescues_are_counted_and_shown():
    """A job of each arrival runs against the wish of the size stage, and goes on so at the second one."""
    jobs = [ty.Job("a", 0.0, 2, 100.0), ty.Job("b", 10.0, 1, 50.0)]
    rescued = ty.simulate(CLUSTER, jobs, ty.Policy("unwilling", size=Unwilling()))
    plain = ty.simulate(CLUSTER, jobs, "fifo")
    assert rescued.outcomes.counts["done"] == 2
    assert 2 <= rescued.summary()["rescues"] <= rescued.summary()["decisions"]
    assert plain.summary()["rescues"] == 0
    said = f"{rescued.rescues} of {rescued.summary()['decisions']} decisions let a job run because nothing"
    assert said in fallback(rescued)
    assert f"unwilling: {said}" in render_report([plain, rescued])
    assert "res-" in printed([plain, rescued])
    assert "res-" not in printed([plain])
