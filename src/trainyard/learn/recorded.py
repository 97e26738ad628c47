"""Decisions of a run, to learn from beside those of simulated episodes.

There they are few and come from one course of events, but what came of them is real. They are weighed by how
likely they still are, as in the replay of earlier iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from trainyard.learn.episode import Scenario
from trainyard.learn.foresight import HORIZONS, coming, traced
from trainyard.learn.networks import value_of
from trainyard.learn.request import LearnRequest
from trainyard.learn.rl import Rollout, Trainer, advantages
from trainyard.model.arrays import Floats, Ints
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.stage import Taken

TRACE = 0.9  # lambda of GAE: there is only one course of events to go by
SOME = 1024  # decisions that are learnt from in an iteration


class Recorded(NamedTuple):
    """Decisions of the run, by slot, as far as it is known what came after them."""

    first: Rollout  # the first decision of each slot, for values; one more than there are rewards
    rewards: Floats  # of each slot
    taken: Rollout  # decisions of slots in which blocks came that are learnt from
    slot: Ints  # of each


class Learner(Trainer):
    """Learns from decisions of a run as well."""

    recorded: Recorded | None = None

    def elsewhere(self, rollout: Rollout) -> list[Rollout]:
        """Return a sample of the run's decisions, judged with the current value network."""
        if self.recorded is None:
            return []
        first, rewards, taken, slot = self.recorded
        some = np.sort(self.rng.permutation(len(slot))[:SOME])
        at_first, own = self._worth(first), self._worth(picked(taken, some))
        ends = np.ones((len(rewards), 1), dtype=np.bool_)
        scaled, s = rewards[:, None] * self.settings.scale, self.settings
        gained = advantages(scaled, at_first[:, None], ends, ~ends, s.discount, TRACE)[:, 0]
        merit = (gained + at_first[:-1])[slot[some]] - own
        # One course of events is noisy: it must not drown what is learnt in simulation.
        merit = (merit - merit.mean()) * min(1.0, rollout.advantages.std() / (merit.std() + 1e-8))
        # A stream never ends, episodes do: values are learnt from the latter only.
        worth = {"advantages": merit.astype(np.float32), "returns": own.astype(np.float32)}
        return [picked(taken, some)._replace(**worth)]

    def _worth(self, some: Rollout) -> Floats:
        with torch.no_grad():
            found = value_of(self.value, torch.from_numpy(some.jobs), torch.from_numpy(some.known))
        return found.numpy().astype(np.float64)


def recorded(lesson: LearnRequest, features: Features, scene: Scenario) -> Recorded | None:
    """Lay out the decisions that were followed by enough slots to know what came next."""
    slots, slot_s = lesson.slots, lesson.slot_s
    last_s = slots[-1].now_s - HORIZONS[-1] * slot_s if slots else 0.0
    known = [slot for slot in slots if slot.now_s <= last_s and slot.now_s >= lesson.jobs[0].arrival_s]
    if len(known) < 2:
        return None
    trace = traced(replace(scene, jobs=lesson.jobs))
    ahead = [coming(trace, slot.now_s / slot_s) for slot in known]
    rewards = -np.diff([slot.met for slot in known]) / slot_s
    spans = [(block.came[0].arrival_s, block.came[-1].arrival_s) for block in lesson.learnt]
    mine = [k for k, slot in enumerate(known[:-1]) if any(a <= slot.now_s <= b for a, b in spans)]
    which = [k for k in mine for _ in known[k].taken]
    if not which:
        return None
    first = _laid_out([slot.taken[0] for slot in known], ahead, features)
    taken = _laid_out([one for k in mine for one in known[k].taken], [ahead[k] for k in which], features)
    return Recorded(first, rewards, taken, np.array(which, dtype=np.int64))


def _laid_out(taken: Sequence[Taken], ahead: Sequence[Floats], features: Features) -> Rollout:
    """Decisions as arrays, padded to the most jobs; what they are worth is left open."""
    count, width = len(taken), max(len(one.jobs) for one in taken)
    jobs = np.zeros((count, width, features.of_job), dtype=np.float32)
    mask = np.zeros((count, 1 + ACTIONS * width), dtype=np.bool_)
    for i, one in enumerate(taken):
        jobs[i, : len(one.jobs)] = one.jobs
        mask[i, : len(one.mask)] = one.mask
    cluster = np.stack([one.cluster for one in taken])
    known = np.concatenate([cluster, np.stack(ahead).astype(np.float32)], axis=1)
    actions = np.array([one.action for one in taken], dtype=np.int64)
    behaviour = np.array([one.log_prob for one in taken], dtype=np.float32)
    nothing = np.zeros(count, dtype=np.float32)
    return Rollout(jobs, cluster, known, mask, actions, behaviour, nothing, nothing)


def picked(rollout: Rollout, which: Ints) -> Rollout:
    """Some of the decisions."""
    return Rollout(*(column[which] for column in rollout))  # type: ignore[arg-type]
