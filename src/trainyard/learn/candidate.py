"""One lesson: from recent history to new weights, and whether they lose to the current ones.

Recent arrivals are cut into blocks that keep their part for ever: of three blocks two are learnt from and the
third judges. Episodes to learn from are pieces of the former, drawn and put together anew; decisions of the
run itself are learnt from as well, weighed by how likely they still are. The guard then replays the
blocks that judge as they came, under both weights and with the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np
import torch

from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Scenario, Source
from trainyard.learn.evaluate import judge
from trainyard.learn.exporting import Ranges, weights_of
from trainyard.learn.foresight import OF_FUTURE
from trainyard.learn.history import Block
from trainyard.learn.journal import Journal
from trainyard.learn.networks import Network, NetworkKind, arrays_of, load_arrays, make
from trainyard.learn.play import logs_of, sampled
from trainyard.learn.recorded import Learner, recorded
from trainyard.learn.request import Answer, LearnRequest
from trainyard.learn.rl import Settings
from trainyard.learn.workload import from_zero
from trainyard.model.arrays import Floats
from trainyard.model.speed import SpeedModel
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import ACTIONS, Singles
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.stage import Dl2
from trainyard.policy.size.dl2.weights import Weights

PIECE = 10  # jobs that stay together when episodes are put together anew
VALIDATED = 8  # episodes that say whether a lesson was of any use
DRAWS = 2  # replays of each block that judges
RANGED = 8  # episodes whose numbers widen the ranges of a weights file
# Fewer decisions and larger steps than in training: there is a guard, and more to come.
ONLINE = Settings(
    reward="job-slots",  # as recorded decisions have it
    rows=16,
    group=4,
    decisions=256,
    minibatch=1024,
    epochs=3,
    rate=1e-3,
    entropy=0.0,
    discount=0.9,
    value_first=1,
)


def learn(lesson: LearnRequest) -> Answer:
    """Improve the weights of a policy on recent history, and judge them."""
    torch.set_num_threads(1)  # the same sums in the same order
    torch.manual_seed(lesson.seed)
    stage = stage_of(lesson.policy)
    before, features = stage.weights, stage.weights.features()
    policy, value, known = _networks(before, features, lesson.values)
    speed = SpeedModel(lesson.cluster)
    scene = Scenario(lesson.cluster, (), lesson.slot_s, speed, lesson.costs)
    settings = replace(
        ONLINE,
        seed=lesson.seed,
        iterations=lesson.iterations,
        leg=lesson.iterations,
        validate=lesson.iterations,
        value_first=ONLINE.value_first if known else lesson.iterations // 3,
    )
    phases = [(1.0, resampled(scene, lesson.learnt, 0))]
    trainer = Learner(policy, value, phases, features, settings, None, lesson.policy)
    trainer.recorded = recorded(lesson, features, scene)
    trainer.train(Journal(), resampled(scene, lesson.learnt, 1), VALIDATED)
    values = arrays_of(value)
    if all(np.array_equal(array, before.arrays[name]) for name, array in arrays_of(policy).items()):
        return Answer(None, values, np.zeros(0), np.zeros(0))
    ranges = _ranges(policy, features, before, resampled(scene, lesson.learnt, 2), lesson.policy)
    after = weights_of(policy, before.names, before.slot_s, ranges, {})
    current, candidate = guard(lesson.policy, after, scene, lesson.judged)
    made = {
        **{name: text for name, text in before.made.items() if not name.startswith("held_out")},
        "lesson": str(lesson.number),
        "replayed_jct_slots": f"{candidate.mean():.4f}",
        "replayed_jct_slots_before": f"{current.mean():.4f}",
    }
    return Answer(replace(after, made=made), values, current, candidate)


def guard(
    policy: Policy, candidate: Weights, scene: Scenario, blocks: Sequence[Block]
) -> tuple[Floats, Floats]:
    """Replay blocks with a policy's own weights and with others; return both average JCTs, by episode."""
    other = copy(stage_of(policy))
    other.weights = candidate

    def scenario(number: int) -> Scenario:
        block = blocks[number // DRAWS]
        jobs = from_zero([*block.found, *block.came], scene.slot_s)
        return replace(scene, jobs=jobs, costs=replace(scene.costs, seed=number))

    found = judge(scenario, DRAWS * len(blocks), [policy, replace(policy, size=other)])
    return found.jct[0], found.jct[1]


def stage_of(policy: Policy) -> Dl2:
    """Return the size stage that learns."""
    assert isinstance(policy.size, Dl2)
    return policy.size


def resampled(scene: Scenario, blocks: Sequence[Block], salt: int) -> Source:
    """Episodes as long as a block: what one block began with, then pieces of any, each after its own gap."""

    def scenario(number: int) -> Scenario:
        draw = np.random.default_rng([salt, number])
        first = blocks[int(draw.integers(len(blocks)))]
        jobs, now_s = [*first.found, first.came[0]], first.came[0].arrival_s
        while len(jobs) < len(first.found) + len(first.came):
            block = blocks[int(draw.integers(len(blocks)))].came
            start = int(draw.integers(1, max(len(block) - PIECE, 1) + 1))
            shift_s = now_s - block[start - 1].arrival_s
            for job in block[start : start + PIECE]:
                now_s = job.arrival_s + shift_s
                jobs.append(replace(job, arrival_s=now_s))
        jobs = [replace(job, job_id=str(i)) for i, job in enumerate(jobs)]
        return replace(scene, jobs=from_zero(jobs, scene.slot_s))

    return scenario


def _networks(
    weights: Weights, features: Features, values: Mapping[str, Singles] | None
) -> tuple[Network, Network, bool]:
    """The policy as it is, values, and whether those are known from before."""
    kind: NetworkKind = "set" if weights.kind == "set" else "window"
    arrays = weights.arrays
    hidden = len(arrays["out.weight"][0])
    window = (len(arrays["out.bias"]) - 1) // ACTIONS if kind == "window" else 0
    policy = make(kind, features.of_job, features.of_cluster, ACTIONS, hidden, window)
    load_arrays(policy, arrays)
    value = make(kind, features.of_job, features.of_cluster + OF_FUTURE, 1, hidden, window)
    shapes = {name: array.shape for name, array in arrays_of(value).items()}
    known = values is not None and shapes == {name: array.shape for name, array in values.items()}
    if values is not None and known:
        load_arrays(value, values)
    return policy, value, known


def _ranges(policy: Network, features: Features, before: Weights, source: Source, shell: Policy) -> Ranges:
    """The ranges so far, widened to what the new policy sees."""
    ranges, rng = Ranges(features), np.random.default_rng(0)
    ranges.low, ranges.high = before.low.copy(), before.high.copy()
    ranges.low_cluster, ranges.high_cluster = before.low_cluster.copy(), before.high_cluster.copy()
    env = BatchEnv(source, RANGED, shell, features, episodes=RANGED)
    seen = env.reset()
    while not env.idle:
        ranges.add(seen)
        seen, _ = env.step(sampled(logs_of(policy, seen), rng))
    return ranges
