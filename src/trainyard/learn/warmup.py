"""Supervised warm-up: imitate the decisions of a teacher, by cross-entropy over legal actions.

Lessons stream in, from a policy that runs through ever new episodes or from a log; they are shuffled by the
chunk and each is used once, or a few times if there are not enough of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import cos, pi

import numpy as np
import torch

from trainyard.errors import InputError
from trainyard.learn.episode import Source
from trainyard.learn.journal import Journal
from trainyard.learn.lessons import Lessons, Moment, lessons, watch
from trainyard.learn.networks import Network, log_probs
from trainyard.model.arrays import Ints
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.features import Features


@dataclass(frozen=True, slots=True)
class Imitation:
    """How to imitate."""

    decisions: int = 300_000  # to learn from in all
    chunk: int = 16_384  # decisions that are shuffled together
    minibatch: int = 256
    rate: float = 3e-3  # of learning at first; falls to nothing along a cosine
    smoothing: float = 0.0  # part of the aim that is spread over all legal actions
    seed: int = 0


def taught(source: Source, teacher: Policy) -> Iterator[Moment]:
    """Decisions of a policy in one episode after another, for ever."""
    number = 0
    while True:
        yield from watch(source(number), teacher)
        number += 1


def again(read: Callable[[], Iterable[Moment]]) -> Iterator[Moment]:
    """Decisions of a log, over and over."""
    while True:
        before = True
        for moment in read():
            before = False
            yield moment
        if before:
            raise InputError("the log has no decisions; it must have at least one")


def warm_up(
    policy: Network, moments: Iterable[Moment], features: Features, how: Imitation, journal: Journal
) -> float:
    """Train a policy on decisions; return how often it agrees with the teacher in the last chunk."""
    optimiser = torch.optim.Adam(policy.parameters(), lr=how.rate)
    rng, seen, agreed = np.random.default_rng(how.seed), 0, 0.0
    for chunk in _chunks(lessons(moments, features=features), how):
        order, right, loss_sum = rng.permutation(len(chunk.actions)), 0, 0.0
        for start in range(0, len(order), how.minibatch):
            some = picked(chunk, order[start : start + how.minibatch])
            for group in optimiser.param_groups:
                group["lr"] = how.rate * (1 + cos(pi * min(seen / how.decisions, 1.0))) / 2
            loss, hits = _loss(policy, some, how.smoothing)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            seen += len(some.actions)
            right += hits
            loss_sum += float(loss.detach()) * len(some.actions)
        agreed = right / len(order)
        journal.note("warm-up", seen, {"loss": loss_sum / len(order), "agreement": agreed})
        if seen >= how.decisions:
            break
    return agreed


def picked(lesson: Lessons, which: Ints) -> Lessons:
    """Some of the decisions."""
    jobs, cluster, mask, actions = lesson
    return Lessons(jobs[which], cluster[which], mask[which], actions[which])


def _loss(policy: Network, some: Lessons, smoothing: float) -> tuple[torch.Tensor, int]:
    """Cross-entropy of a minibatch, and how many likeliest actions are the teacher's."""
    jobs, cluster, mask, actions = (torch.from_numpy(array) for array in some)
    logs = log_probs(policy, jobs, cluster, mask)
    loss = -logs.gather(1, actions[:, None]).mean()
    if smoothing:
        even = (logs * mask).sum(dim=1) / mask.sum(dim=1)
        loss = (1 - smoothing) * loss - smoothing * even.mean()
    return loss, int((logs.argmax(dim=1) == actions).sum())


def _chunks(source: Iterable[Lessons], how: Imitation) -> Iterator[Lessons]:
    """Lessons by the chunk, padded to the most jobs in it."""
    parts, size = [], 0
    for lesson in source:
        parts.append(lesson)
        size += len(lesson.actions)
        if size >= how.chunk:
            yield joined(parts)
            parts, size = [], 0
    if parts:
        yield joined(parts)


def joined(parts: list[Lessons]) -> Lessons:
    """Put lessons together."""
    width = max(part.jobs.shape[1] for part in parts)
    total, first = sum(len(part.actions) for part in parts), parts[0]
    jobs = np.zeros((total, width, first.jobs.shape[2]), dtype=np.float32)
    mask = np.zeros((total, 1 + 3 * width), dtype=np.bool_)
    at = 0
    for part in parts:
        n, wide = part.jobs.shape[:2]
        jobs[at : at + n, :wide] = part.jobs
        mask[at : at + n, : part.mask.shape[1]] = part.mask
        at += n
    cluster = np.concatenate([part.cluster for part in parts])
    return Lessons(jobs, cluster, mask, np.concatenate([part.actions for part in parts]))
