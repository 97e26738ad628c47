"""Judging policies side by side on the same episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from trainyard.learn.episode import Source
from trainyard.learn.workload import bound
from trainyard.model.arrays import Floats
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import Slots
from trainyard.sim.clock import Simulator


class Verdict(NamedTuple):
    """Average JCT and makespan in slots, by policy (rows) and episode."""

    names: tuple[str, ...]
    jct: Floats
    makespan: Floats
    bounds: Floats  # by episode: average JCT with every job always at its best

    def records(self) -> list[dict[str, Any]]:
        """One record for each policy."""
        means, limit = self.jct.mean(axis=1), float(self.bounds.mean())
        return [
            {
                "policy": name,
                "avg_jct_slots": float(means[i]),
                "sd_slots": float(self.jct[i].std()),
                "better_than_first": float(1 - means[i] / means[0]),
                "makespan_slots": float(self.makespan[i].mean()),
                "bound_ratio": limit / float(means[i]),
            }
            for i, name in enumerate(self.names)
        ]


def judge(
    source: Source,
    episodes: int,
    policies: Sequence[Policy],
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Run every policy through the same episodes."""
    jct, makespan = np.zeros((2, len(policies), episodes))
    bounds, slots = np.zeros(episodes), Slots(1, Features())
    for number in range(episodes):
        scenario = source(number)
        bounds[number] = bound(scenario, slots)
        for i, policy in enumerate(policies):
            cluster, jobs, speed = scenario.cluster, scenario.jobs, scenario.speed
            simulator = Simulator(cluster, jobs, policy, scenario.options, speed=speed)
            while simulator.advance():
                simulator.decide()
            finish_s, arrival_s = simulator.finishes()
            jct[i, number] = (finish_s - arrival_s).mean() / scenario.slot_s
            makespan[i, number] = (finish_s.max() - arrival_s.min()) / scenario.slot_s
            if progress is not None:
                progress(i, number + 1)
    return Verdict(tuple(policy.name for policy in policies), jct, makespan, bounds)
