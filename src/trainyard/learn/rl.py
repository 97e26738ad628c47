"""Reinforcement learning: PPO with a value baseline, read from top to bottom.

Episodes run side by side in a `BatchEnv`; after some decisions in each, advantages are estimated and the
networks improved. What the DL2 paper has (value baseline, entropy bonus, experience replay, job-aware
exploration, its reward) can be switched on and off one by one; what differs from its public code: the
policy that is asked is the current one, with what is not legal left out; returns may go over many slots, with
the discount between slots and none inside; the entropy is over legal actions; old decisions are weighed by
how likely they still are.

Every `leg` iterations the episodes begin anew and everything that matters is written to a checkpoint, so a
training that was broken off goes on exactly as it would have.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trainyard.errors import InputError
from trainyard.learn.batch import BatchEnv, Reward
from trainyard.learn.episode import Source
from trainyard.learn.explore import way_out
from trainyard.learn.foresight import Foresight
from trainyard.learn.journal import Journal
from trainyard.learn.networks import Network, arrays_of, entropy, load_arrays, log_probs, value_of
from trainyard.learn.play import logs_of, mean_jct, play, sampled
from trainyard.model.arrays import Floats, Ints, Mask
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import STOP, Observation


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be turned."""

    seed: int = 0
    iterations: int = 30
    rows: int = 48  # episodes side by side
    group: int = 8  # rows that play the same trace; divides `rows`
    decisions: int = 512  # of each row in an iteration
    leg: int = 10  # iterations between checkpoints
    reward: Reward = "delay"
    scale: float = 0.1  # of rewards, so that values are of moderate size
    discount: float = 0.0  # from slot to slot; none inside a slot
    trace: float = 0.9  # lambda of GAE, from slot to slot; less makes errors of the values count
    trace_inside: float = 0.9  # lambda of GAE, from decision to decision inside a slot
    epochs: int = 3
    minibatch: int = 1536
    clip: float = 0.2  # the ratio of new to old probability counts between 1 - clip and 1 + clip
    rate: float = 3e-4  # of learning, policy; falls to a tenth
    value_rate: float = 2e-3
    value_first: int = 2  # iterations in which only the values are learnt, so that the warm-up is not spoilt
    most_gradient: float = 0.5  # norm
    stray: float = 0.05  # an iteration ends early when the policy has moved so far (KL)
    baseline: bool = True  # advantages over learnt values; without, plain returns
    entropy: float = 0.0005  # weight of the entropy bonus
    replay: int = 0  # earlier iterations that are learnt from again
    most_weight: float = 1.0  # of an old decision
    explore: float = 0.0  # how often a way out of a poor state is forced
    validate: int = 10  # iterations between validations


class Rollout(NamedTuple):
    """Decisions of one iteration; (T, B, ...) until advantages are known, then (T * B, ...)."""

    jobs: Singles
    cluster: Singles
    known: Singles  # the cluster and what is to come: for the values only
    mask: Mask
    actions: Ints
    behaviour: Singles  # log-probability with which the action was taken
    advantages: Singles
    returns: Singles


class Trainer:
    """A policy, its values, and what they learn from."""

    def __init__(
        self,
        policy: Network,
        value: Network,
        phases: Sequence[tuple[float, Source]],
        features: Features,
        settings: Settings,
        directory: Path | None = None,
        shell: Policy | None = None,
    ) -> None:
        self.policy, self.value, self.features, self.settings = policy, value, features, settings
        self.shell = shell  # who goes first and where jobs run
        self.phases = phases  # the source of episodes, and up to which part of the training it is used
        self.directory = directory
        self.optimiser = torch.optim.Adam(policy.parameters(), lr=settings.rate, eps=1e-5)
        self.value_optimiser = torch.optim.Adam(value.parameters(), lr=settings.value_rate, eps=1e-5)
        self.rng = np.random.default_rng(settings.seed)
        self.past: deque[Rollout] = deque(maxlen=settings.replay)
        self.iteration = 0
        self.before = np.nan  # what the policy could do before, on held-out episodes
        self.best: tuple[float, dict[str, Any]] = (np.inf, arrays_of(policy))

    # 1. The whole.

    def train(self, journal: Journal, validation: Source, episodes: int = 10) -> float:
        """Train to the end; the policy is then the one that did best in validation, whose JCT is returned."""
        if not self.iteration:
            self._validate(journal, validation, episodes)
        while self.iteration < self.settings.iterations:
            if self.iteration % self.settings.leg == 0:
                self.save()
                env, future = self._environment()
            rollout, noted = self.collect(env, future)
            noted |= self.improve(rollout)
            self.iteration += 1
            noted["jct"] = mean_jct(env.outcomes[-self.settings.rows :]) if env.outcomes else np.nan
            journal.note("rl", self.iteration, noted)
            if self.iteration % self.settings.validate == 0:
                self._validate(journal, validation, episodes)
        self.save()
        load_arrays(self.policy, self.best[1])
        return self.best[0]

    def _environment(self) -> tuple[BatchEnv, Foresight]:
        """Begin episodes that were not seen before, of the phase of the curriculum that it is time for."""
        part = self.iteration / self.settings.iterations
        source = next((source for until, source in self.phases if part < until), self.phases[-1][1])
        first = 1_000_000 * self.settings.seed + 10_000 * (self.iteration // self.settings.leg)
        future = Foresight(lambda i: source(first + i), self.settings.rows, self.settings.group)
        env = BatchEnv(future, self.settings.rows, self.shell, self.features)
        env.reset()
        future.look(env, list(range(env.batch)))
        return env, future

    def _validate(self, journal: Journal, validation: Source, episodes: int) -> None:
        rng = np.random.default_rng(0)
        jct = mean_jct(play(self.policy, validation, episodes, self.features, rng, shell=self.shell))
        if jct < self.best[0]:
            self.best = jct, arrays_of(self.policy)
        journal.note("validation", self.iteration, {"jct": jct, "best": self.best[0]})

    # 2. Decisions.

    def collect(self, env: BatchEnv, future: Foresight) -> tuple[Rollout, dict[str, float]]:
        """Take decisions with the current policy, and estimate what each was worth."""
        s, seen = self.settings, env.slots.observe()
        steps: list[tuple[Observation, Ints, Singles]] = []
        coming: list[Singles] = [future.seen.copy()]
        moments = np.zeros((s.decisions, s.rows), dtype=np.int64)
        rewards, ends, dones = np.zeros((3, s.decisions, s.rows))
        for t in range(s.decisions):
            moments[t] = future.moments(env)
            actions, behaviour = self._choose(env, seen)
            kept = Observation(seen.jobs.copy(), seen.cluster.copy(), seen.mask)
            steps.append((kept, actions, behaviour))
            seen, step = env.step(actions)
            rewards[t] = step.reward(s.reward) * s.scale
            ends[t], dones[t] = step.slot_end, step.done
            future.look(env, np.flatnonzero(step.slot_end).tolist())
            coming.append(future.seen.copy())
        observations = stacked([step[0] for step in steps] + [seen])
        known = np.concatenate([observations.cluster, np.stack(coming)], axis=2)
        values = self._values(observations.jobs, known) if s.baseline else np.zeros((s.decisions + 1, s.rows))
        traces = (s.trace, s.trace_inside) if s.baseline else (1.0, 1.0)
        gained = advantages(rewards, values, ends > 0, dones > 0, s.discount, *traces)
        returns = gained + values[:-1]
        unexplained = float(gained.var() / max(returns.var(), 1e-9))
        gained = even(relative(gained, moments), s.group)
        columns = [
            *(array[:-1] for array in (observations.jobs, observations.cluster, known, observations.mask)),
            np.stack([step[1] for step in steps]),
            np.stack([step[2] for step in steps]),
            gained.astype(np.float32),
            returns.astype(np.float32),
        ]
        rollout = Rollout(*(column.reshape(-1, *column.shape[2:]) for column in columns))  # type: ignore[arg-type]
        return rollout, {"explained": 1 - unexplained, "reward": float(rewards.sum() / max(ends.sum(), 1))}

    def _choose(self, env: BatchEnv, seen: Observation) -> tuple[Ints, Singles]:
        """Draw actions, and say how likely they were to be taken."""
        logs, rows = logs_of(self.policy, seen), np.arange(env.batch)
        actions = sampled(logs, self.rng)
        if not self.settings.explore:
            return actions, logs[rows, actions]
        out = way_out(env.slots, seen.mask)
        forced = np.where(out != STOP, self.settings.explore, 0.0)
        actions = np.where(self.rng.random(env.batch) < forced, out, actions)
        likely = (1 - forced) * np.exp(logs[rows, actions]) + forced * (actions == out)
        return actions, np.log(likely).astype(np.float32)

    def _values(self, jobs: Singles, known: Singles) -> Floats:
        with torch.no_grad():
            found = [
                value_of(self.value, torch.from_numpy(some), torch.from_numpy(about)).numpy()
                for some, about in zip(jobs, known, strict=True)
            ]
        return np.stack(found).astype(np.float64)

    # 3. Improvement.

    def improve(self, rollout: Rollout) -> dict[str, float]:
        """Make good decisions likelier and values truer."""
        s = self.settings
        self._set_rates()
        elsewhere = self.elsewhere(rollout)
        data = joined([rollout, *self.past, *elsewhere])
        self.past.append(rollout)
        tensors = [torch.from_numpy(column) for column in data]
        old, weight = self._proximal(tensors, fresh=not (elsewhere or self.past.maxlen or s.explore))
        sums, count = np.zeros(5), 0
        for _ in range(s.epochs):
            order = torch.from_numpy(self.rng.permutation(len(data.actions)))
            for some in torch.split(order, s.minibatch):
                batch = [tensor[some] for tensor in tensors]
                noted = self._step(batch, old[some], weight[some])
                sums += noted
                count += 1
            if noted[3] > s.stray:
                break
        means = (sums / count).tolist()
        return dict(zip(("policy_loss", "value_loss", "entropy", "kl", "clipped"), means, strict=True))

    def elsewhere(self, rollout: Rollout) -> list[Rollout]:
        """Return decisions that were not taken in these episodes, to be learnt from as well."""
        return []

    def _set_rates(self) -> None:
        left = 1 - self.iteration / self.settings.iterations
        for optimiser, rate in (
            (self.optimiser, self.settings.rate),
            (self.value_optimiser, self.settings.value_rate),
        ):
            for group in optimiser.param_groups:
                group["lr"] = rate * (0.1 + 0.9 * left)

    def _proximal(self, tensors: list[Tensor], fresh: bool) -> tuple[Tensor, Tensor]:
        """Log-probabilities under the policy before this improvement, and the weights of decisions."""
        jobs, cluster, _, mask, actions, behaviour = tensors[:6]
        if fresh:
            return behaviour, torch.ones_like(behaviour)
        with torch.no_grad():
            parts = zip(*(torch.split(t, 4096) for t in (jobs, cluster, mask, actions)), strict=True)
            old = torch.cat(
                [log_probs(self.policy, j, c, m).gather(1, a[:, None])[:, 0] for j, c, m, a in parts]
            )
        return old, (old - behaviour).exp().clamp(max=self.settings.most_weight)

    def _step(self, batch: list[Tensor], old: Tensor, weight: Tensor) -> Floats:
        """One step down the gradients of a minibatch."""
        s, (jobs, cluster, known, mask, actions, _, gained, returns) = self.settings, batch
        logs = log_probs(self.policy, jobs, cluster, mask)
        ratio = (logs.gather(1, actions[:, None])[:, 0] - old).exp()
        gained = (gained - gained.mean()) / (gained.std() + 1e-8)
        surrogate = torch.min(ratio * gained, ratio.clamp(1 - s.clip, 1 + s.clip) * gained)
        spread = entropy(logs).mean()
        policy_loss = -(weight * surrogate).mean() - s.entropy * spread
        if self.iteration >= s.value_first or not s.baseline:
            self._descend(policy_loss, self.optimiser, self.policy)
        value_loss = torch.zeros(())
        if s.baseline:
            error = value_of(self.value, jobs, known) - returns
            value_loss = (weight * error.square()).mean()
            self._descend(value_loss, self.value_optimiser, self.value)
        with torch.no_grad():
            kl, clipped = (ratio - 1 - ratio.log()).mean(), ((ratio - 1).abs() > s.clip).float().mean()
        return np.array([float(x.detach()) for x in (policy_loss, value_loss, spread, kl, clipped)])

    def _descend(self, loss: Tensor, optimiser: torch.optim.Optimizer, network: Network) -> None:
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), self.settings.most_gradient)
        optimiser.step()

    # 4. Checkpoints.

    def save(self) -> None:
        """Write down everything that the rest of the training depends on."""
        if self.directory is None:
            return
        state = {
            "settings": json.dumps(asdict(self.settings)),
            "iteration": self.iteration,
            "before": self.before,
            "policy": self.policy.state_dict(),
            "value": self.value.state_dict(),
            "optimisers": [self.optimiser.state_dict(), self.value_optimiser.state_dict()],
            "random": json.dumps(self.rng.bit_generator.state),
            "best": [self.best[0], {name: torch.from_numpy(array) for name, array in self.best[1].items()}],
            "past": [[torch.from_numpy(column) for column in rollout] for rollout in self.past],
        }
        target = self.directory / "checkpoint.pt"
        torch.save(state, target.with_suffix(".tmp"))
        target.with_suffix(".tmp").replace(target)

    def resume(self) -> bool:
        """Go on from the checkpoint of the directory, if there is one."""
        path = None if self.directory is None else self.directory / "checkpoint.pt"
        if path is None or not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        if state["settings"] != json.dumps(asdict(self.settings)):
            what = "this checkpoint is of a training with other settings; give those, or another directory"
            raise InputError(what, where=str(path))
        self.iteration, self.before = state["iteration"], state["before"]
        self.policy.load_state_dict(state["policy"])
        self.value.load_state_dict(state["value"])
        for optimiser, saved in zip((self.optimiser, self.value_optimiser), state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        self.rng.bit_generator.state = json.loads(state["random"])
        self.best = state["best"][0], {name: tensor.numpy() for name, tensor in state["best"][1].items()}
        self.past.extend(Rollout(*(column.numpy() for column in columns)) for columns in state["past"])
        return True


def advantages(
    rewards: Floats,
    values: Floats,
    ends: Mask,
    dones: Mask,
    discount: float,
    trace: float,
    trace_inside: float = 1.0,
) -> Floats:
    """Generalised advantage estimates (T, B); `values` has one row more: of what comes after the last.

    A decision that ends a slot is followed by one that counts `discount` times as much, any other by one that
    counts fully; lambda likewise.
    """
    keeps = np.where(dones, 0.0, np.where(ends, discount, 1.0))
    errors = rewards + keeps * values[1:] - values[:-1]
    fades = keeps * np.where(ends, trace, trace_inside)
    gained, after = np.zeros_like(rewards), np.zeros(rewards.shape[1])
    for t in range(len(rewards) - 1, -1, -1):
        gained[t] = after = errors[t] + fades[t] * after
    return gained


def relative(gained: Floats, moments: Ints) -> Floats:
    """Advantages (T, B) over those of other rows in the same slot of the same trace.

    What such rows have in common, above all the error of the values there, is no decision's merit. A row is
    measured by its first decision in a slot against the mean of the others'; one alone is left as it is.
    """
    steps, rows = gained.shape
    first = np.ones((steps, rows), dtype=np.bool_)
    first[1:] = moments[1:] != moments[:-1]
    at = first.T.nonzero()  # by row, then by time
    merit, moment = gained.T[at], moments.T[at]
    _, which, count = np.unique(moment, return_inverse=True, return_counts=True)
    total = np.bincount(which, merit)[which]
    others = np.where(count[which] > 1, (total - merit) / np.maximum(count[which] - 1, 1), 0.0)
    slot = first.T.ravel().cumsum() - 1  # of every decision, among the slots by row and time
    over: Floats = gained - others[slot].reshape(rows, steps).T
    return over


def even(gained: Floats, group: int) -> Floats:
    """Advantages (T, B) of a size that is the same for every trace, however many jobs it has."""
    traces = gained.reshape(len(gained), -1, group)
    alike: Floats = traces / (traces.std(axis=(0, 2), keepdims=True) + 1e-8)
    return alike.reshape(gained.shape)


def stacked(seen: Sequence[Observation]) -> Observation:
    """Observations of many steps as arrays (T, B, ...), padded to the most jobs."""
    width = max(one.jobs.shape[1] for one in seen)
    shape = (len(seen), *seen[0].jobs.shape)
    jobs = np.zeros((*shape[:2], width, shape[3]), dtype=np.float32)
    mask = np.zeros((*shape[:2], 1 + 3 * width), dtype=np.bool_)
    for t, one in enumerate(seen):
        jobs[t, :, : one.jobs.shape[1]] = one.jobs
        mask[t, :, : one.mask.shape[1]] = one.mask
    return Observation(jobs, np.stack([one.cluster for one in seen]), mask)


def joined(rollouts: Sequence[Rollout]) -> Rollout:
    """Several rollouts as one, padded to the most jobs."""
    if len(rollouts) == 1:
        return rollouts[0]
    width = max(rollout.jobs.shape[1] for rollout in rollouts)
    wide = [
        r._replace(
            jobs=np.pad(r.jobs, ((0, 0), (0, width - r.jobs.shape[1]), (0, 0))),
            mask=np.pad(r.mask, ((0, 0), (0, 1 + 3 * width - r.mask.shape[1]))),
        )
        for r in rollouts
    ]
    return Rollout(*(np.concatenate(columns) for columns in zip(*wide, strict=True)))
