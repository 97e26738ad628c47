"""The whole of a training: warm-up from a teacher, reinforcement learning, a weights file with its scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from trainyard.files.reading import StrPath
from trainyard.learn.batch import BatchEnv
from trainyard.learn.exporting import Ranges, weights_of
from trainyard.learn.foresight import OF_FUTURE
from trainyard.learn.journal import Journal
from trainyard.learn.lessons import Moment
from trainyard.learn.log import read_log
from trainyard.learn.networks import Network, NetworkKind, make
from trainyard.learn.play import logs_of, mean_jct, play, sampled
from trainyard.learn.rl import Settings, Trainer
from trainyard.learn.warmup import Imitation, again, taught, warm_up
from trainyard.learn.workload import Split
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.matrix import Raw
from trainyard.policy.size.dl2.weights import Weights

NO_CHANGES: Mapping[str, Any] = MappingProxyType({})
# Without a teacher there is nothing to spoil: more is tried out.
FROM_NOTHING: Mapping[str, Any] = MappingProxyType({"rate": 1e-3, "entropy": 0.005})
VALIDATION = 36  # episodes that choose the best weights
JUDGED = 10  # held-out episodes that give the score of a weights file
RANGE_EPISODES = 16  # training episodes whose numbers are the ranges of a weights file


@dataclass(frozen=True, slots=True)
class Training:
    """What to train."""

    teacher: Policy | StrPath | None  # a policy, a decision log, or none
    phases: tuple[tuple[float, Split], ...]  # what is trained on, and up to which part of the training
    network: NetworkKind = "set"
    window: int = 20  # jobs that the paper's network sees
    imitation: Imitation = field(default_factory=Imitation)
    rl: Settings = field(default_factory=Settings)

    @property
    def split(self) -> Split:
        """What weights are chosen and judged by."""
        return self.phases[-1][1]


def plan_of(
    teacher: Policy | StrPath | None,
    phases: tuple[tuple[float, Split], ...],
    network: NetworkKind,
    decisions: int,
    iterations: int,
    seed: int,
    changes: Mapping[str, Any] = NO_CHANGES,
) -> Training:
    """Return a training with the settings that go with its teacher, but for some changes of them."""
    settings = {
        "seed": seed,
        "iterations": iterations,
        **(FROM_NOTHING if teacher is None else {}),
        **changes,
    }
    imitation = Imitation(decisions=decisions, seed=seed)
    return Training(teacher, phases, network, imitation=imitation, rl=Settings(**settings))


def train(
    training: Training, journal: Journal, made: Mapping[str, str], directory: Path | None = None
) -> Weights:
    """Train from the beginning, or from the checkpoint of the directory, and return the best weights."""
    torch.set_num_threads(1)  # the same sums in the same order
    torch.manual_seed(training.rl.seed)
    names = training.split.names if training.network == "window" else ()
    features = Raw(names) if training.network == "window" else Features()
    shape = {"window": training.window}
    policy = make(training.network, features.of_job, features.of_cluster, ACTIONS, **shape)
    value = make(training.network, features.of_job, features.of_cluster + OF_FUTURE, 1, **shape)
    phases = [(until, split.training) for until, split in training.phases]
    trainer = Trainer(policy, value, phases, features, training.rl, directory)
    if not trainer.resume():
        if training.teacher is not None:
            warm_up(policy, _decisions(training), features, training.imitation, journal)
        trainer.before = _score(policy, training, features)
    trainer.train(journal, training.split.validation, VALIDATION)
    score = _score(policy, training, features)
    journal.note("held out", training.rl.iterations, {"before": trainer.before, "trained": score})
    scores = {"held_out_jct_slots": f"{score:.4f}", "held_out_jct_slots_before_rl": f"{trainer.before:.4f}"}
    ranges = _ranges(policy, training, features)
    return weights_of(policy, names, training.split.slot_s, ranges, {**made, **scores})


def _score(policy: Network, training: Training, features: Features) -> float:
    """Average JCT on held-out episodes."""
    rng = np.random.default_rng(0)
    return mean_jct(play(policy, training.split.held_out, JUDGED, features, rng))


def _decisions(training: Training) -> Iterator[Moment]:
    """What the teacher decides in the episodes of all phases, or what a log says it did."""
    teacher = training.teacher
    if isinstance(teacher, Policy):
        sources = [split.training for _, split in training.phases]
        return taught(lambda i: sources[i % len(sources)](i), teacher)
    assert teacher is not None
    path = teacher
    return again(lambda: read_log(path))


def _ranges(policy: Network, training: Training, features: Features) -> Ranges:
    """Ranges of what the policy sees in training episodes of all phases."""
    ranges, rng = Ranges(features), np.random.default_rng(0)
    for _, split in training.phases:
        env = BatchEnv(split.training, 8, features=features, episodes=RANGE_EPISODES)
        seen = env.reset()
        while not env.idle:
            ranges.add(seen)
            seen, _ = env.step(sampled(logs_of(policy, seen), rng))
    return ranges
