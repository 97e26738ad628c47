"""The rules of a run: the same by object and by name."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

import trainyard as ty
from trainyard.model.rules import RuleOptions, Rules

OF_REAL_JOBS = ["most_starts", "most_idle", "many_unsaved", "back_off_s", "most_back_off_s"]


def test_rules_by_name_are_all_rules_of_simulations():
    assert [field.name for field in fields(Rules)] == [*RuleOptions.__annotations__, *OF_REAL_JOBS]


def test_without_rules_nothing_costs_time_and_nothing_ends_early():
    assert Rules() == Rules(round_s=None, restart_s=None, start_s=0.0, seed=0, until_s=math.inf)


def test_a_run_follows_the_rules_that_it_is_given():
    cluster = ty.uniform_cluster(nodes=1, gpus=1)
    jobs = [ty.Job("a", 0.0, 1, duration_s=100.0), ty.Job("b", 0.0, 1, duration_s=50.0)]
    late = ty.simulate(cluster, jobs, "fifo", start_s=7.0)
    assert late.outcomes.finish_s.tolist() == [107.0, 164.0]
    early = ty.simulate(cluster, jobs, "fifo", until_s=120.0)
    assert early.outcomes.finish_s[0] == 100.0
    assert math.isnan(early.outcomes.finish_s[1])
    rounds = ty.simulate(cluster, jobs, "fifo", round_s=60.0)
    assert rounds.outcomes.start_s.tolist() == [0.0, 120.0]


def test_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="restart"):
        ty.simulate(ty.uniform_cluster(1), [], "fifo", restart=3.0)
