"""Judging policies side by side, the curves of a training, and the stage that answers what it was told."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from trainyard.learn import journal
from trainyard.learn.episode import AsTold, Episode, Scenario
from trainyard.learn.evaluate import Verdict, judge
from trainyard.learn.journal import Journal
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.stages import Shapes

CLUSTER = uniform_cluster(1, 4)


def rigid(number):
    """Two gangs that want the whole cluster: 300 s and 100 s."""
    jobs = [Job("long", 0.0, 4, 300.0), Job("short", 0.0, 4, 100.0)]
    return Scenario(CLUSTER, jobs, 100.0)


def test_policies_are_judged_by_the_same_episodes():
    told = []
    found = judge(rigid, 2, [parse_policy("fifo"), parse_policy("srtf")], lambda *at: told.append(at))
    assert found.names == ("fifo", "srtf")
    assert found.jct.tolist() == [[3.5, 3.5], [2.5, 2.5]]  # 300 and 400 s, 400 and 100 s
    assert found.makespan.tolist() == [[4, 4], [4, 4]]
    assert found.bounds.tolist() == [2, 2]
    assert told == [(0, 1), (1, 1), (0, 2), (1, 2)]


def test_records_compare_with_the_first_and_with_the_bound():
    verdict = Verdict(
        ("a", "b"),
        np.array([[4.0, 6.0], [3.0, 5.0]]),
        np.array([[8.0, 9.0], [7.0, 8.0]]),
        np.array([1.0, 3.0]),
    )
    first, second = verdict.records()
    assert (first["avg_jct_slots"], first["sd_slots"], first["better_than_first"]) == (5, 1, 0)
    assert (second["policy"], second["better_than_first"]) == ("b", pytest.approx(0.2))
    assert (second["makespan_slots"], second["bound_ratio"]) == (7.5, 0.5)


def test_an_episode_runs_in_rounds_of_a_slot_and_keeps_its_costs():
    costs = Rules(restart_s=7.0, start_s=3.0, seed=5)
    options = Scenario(CLUSTER, [], 60.0, costs=costs).options
    assert (options.round_s, options.restart_s, options.start_s, options.seed) == (60, 7, 3, 5)


def test_who_was_not_told_waits():
    stage = AsTold()
    stage.tell(4, np.array([2, 0]), Shapes(np.array([3, 1]), np.array([5, 0])))
    assert stage.gpus.tolist() == [1, 0, 3, 0]
    assert stage.servers.tolist() == [0, 0, 5, 0]
    stage.tell(2, np.array([1]), Shapes(np.array([2])))
    assert (stage.gpus.tolist(), stage.servers.tolist()) == ([0, 2], [0, 0])


def test_an_episode_slot_by_slot():
    """Two jobs of 100 s on one GPU: the first has one for a slot of 50 s, then both have two."""
    jobs = [Job(name, at, 1, 100.0, min_gpus=1, max_gpus=4) for name, at in (("a", 0.0), ("b", 10.0))]
    episode = Episode(3, Scenario(CLUSTER, jobs, 50.0), Policy("dl2"))
    snapshot, ranked = episode.open()
    assert (snapshot.now_s, ranked.tolist()) == (0, [0])
    episode.close(ranked, Shapes(np.array([1])))
    snapshot, ranked = episode.open()
    assert (snapshot.now_s, len(ranked), episode.arrivals().tolist()) == (50, 2, [0, 10])
    assert episode.rewards() == pytest.approx((-(50 + 40) / 50, 0.5))
    episode.close(ranked, Shapes(np.array([2, 2])))
    assert episode.open() is None
    assert episode.rewards() == pytest.approx((-(25 + 50) / 50, 1.5))
    assert episode.outcome() == (3, pytest.approx((75 + 90) / 2 / 50), 2, 2, 0)


def test_curves_are_appended_and_passed_on(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "find_spec", lambda name: None)
    shown = []
    for step in (1, 2):
        notes = Journal(tmp_path, lambda *what: shown.append(what))
        notes.note("rl", step, {"jct": 2.5, "loss": 0.1})
        notes.close()
    with (tmp_path / "curves.csv").open(newline="") as file:
        rows = [row[:4] for row in csv.reader(file)]
    assert rows == [
        ["rl", step, name, value] for step in "12" for name, value in (("jct", "2.5"), ("loss", "0.1"))
    ]
    assert shown == [("rl", step, {"jct": 2.5, "loss": 0.1}) for step in (1, 2)]


def test_without_a_directory_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notes = Journal()
    notes.note("rl", 1, {"jct": 2.5})
    notes.close()
    assert not list(tmp_path.iterdir())
