"""One training of DL2, and how good its policy is on held-out traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any, Literal, NamedTuple

import numpy as np

from trainyard.learn.settings.splits import AnySetting, split_of
from trainyard.learn.workload import mixed
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.stage import Dl2
from trainyard.policy.size.dl2.weights import Weights
from trainyard.reproduce.dl2.runs import scenario
from trainyard.sim.clock import Simulator

Judged = tuple[tuple[AnySetting, int], ...]  # settings, and how many held-out traces of each
Overrides = tuple[tuple[str, Any], ...]  # fields of learn.rl.Settings, and their values


@dataclass(frozen=True, slots=True)
class Learning:
    """One training, and where its policy is judged."""

    on: tuple[AnySetting, ...]
    judged: Judged
    seed: int = 0
    iterations: int = 30  # none: imitation only
    decisions: int = 300_000  # that are imitated
    teacher: str = "steepest"
    network: Literal["set", "window"] = "set"
    changes: Overrides = ()

    def carry_out(self) -> Learned:
        """Train, and judge on held-out traces."""
        from trainyard.learn.journal import Journal
        from trainyard.learn.training import plan_of, train

        began, curves = process_time(), Curves([], [])
        teacher = None if self.teacher == "none" else parse_policy(self.teacher)
        split = mixed([split_of(setting) for setting in self.on])
        plan = plan_of(
            teacher,
            ((1.0, split),),
            self.network,
            self.decisions,
            self.iterations,
            self.seed,
            dict(self.changes),
        )
        weights = train(plan, Journal(None, partial(curves.note, began)), {})
        spent = process_time() - began
        scores = {setting: judge(setting, traces, weights) for setting, traces in self.judged}
        return Learned(curves, spent, scores, weights)


class Curves(NamedTuple):
    """Curves of one training."""

    agreement: list[tuple[int, float]]  # decisions imitated; how often the network agrees with its teacher
    validation: list[tuple[int, float, float]]  # iteration, CPU seconds, average JCT on validation traces

    def note(self, began: float, part: str, step: int, numbers: Mapping[str, float]) -> None:
        """Keep what a picture is made of."""
        if part == "warm-up":
            self.agreement.append((step, numbers["agreement"]))
        elif part == "validation":
            self.validation.append((step, process_time() - began, numbers["jct"]))


class Learned(NamedTuple):
    """What came of a training."""

    curves: Curves
    cpu_s: float
    scores: Mapping[AnySetting, Score]
    weights: Weights


class Score(NamedTuple):
    """Means over the traces of a setting."""

    jct: float  # slots
    makespan: float  # slots
    left: float  # part of the decisions that the policy left to its fallback


def judge(setting: AnySetting, traces: int, weights: Weights) -> Score:
    """Run the policy through held-out traces, as `trainyard simulate` would."""
    scores = [_one(setting, trace, weights) for trace in range(traces)]
    return Score(*np.mean(scores, axis=0).tolist())


def _one(setting: AnySetting, trace: int, weights: Weights) -> tuple[float, float, float]:
    ground, stage = scenario(setting, trace), Dl2()
    stage.weights = weights
    options = Rules(round_s=ground.slot_s)
    simulator = Simulator(ground.cluster, ground.jobs, Policy("dl2", size=stage), options, speed=ground.speed)
    simulator.run()
    finish_s, arrival_s = simulator.finishes()
    jct, makespan = (finish_s - arrival_s).mean(), finish_s.max() - arrival_s.min()
    return jct / ground.slot_s, makespan / ground.slot_s, stage.left / max(stage.asked, 1)
