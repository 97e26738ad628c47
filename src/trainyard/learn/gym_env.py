"""A Gymnasium environment of one episode at a time, for tools that expect one.

Its arrays have a fixed size: the first `most_jobs` jobs are seen, those behind keep their smallest size. The
mask of legal actions is part of the observation, and in `info` as `action_mask`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from trainyard.learn.batch import BatchEnv, Reward
from trainyard.learn.episode import Scenario
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.matrix import Raw
from trainyard.policy.size.dl2.slot import Observation

Encoding = Literal["rows", "matrix"]
LOW, HIGH = -10.0, 1e6  # of all numbers that are observed
Seen = dict[str, Any]  # arrays


class SlotEnv(gymnasium.Env[Seen, np.int64]):
    """One decision a step: 0 ends the slot; 1 + 3j, 2 + 3j, 3 + 3j give job j a worker, a server, or both."""

    def __init__(
        self,
        scenario: Callable[[int], Scenario],
        most_jobs: int = 20,
        reward: Reward = "job-slots",
        encoding: Encoding = "rows",
        policy: Policy | None = None,
        features: Features | None = None,
    ) -> None:
        self._scenario = scenario
        self._most = most_jobs
        self._reward = reward
        self._encoding = encoding
        self._next = 0
        names = features.names if features is not None else ()
        self._env = BatchEnv(
            self._draw, 1, policy, features if encoding == "rows" else Raw(names), episodes=1
        )
        actions = 1 + ACTIONS * most_jobs
        self.action_space = spaces.Discrete(actions)
        numbers = self._env.slots.features
        shape = (most_jobs, numbers.of_job) if encoding == "rows" else (numbers.of_job, most_jobs)
        self.observation_space = spaces.Dict(
            {
                "jobs": spaces.Box(LOW, HIGH, shape, np.float32),
                "cluster": spaces.Box(LOW, HIGH, (numbers.of_cluster,), np.float32),
                "mask": spaces.MultiBinary(actions),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode: the one of this number with a seed, else the next one."""
        super().reset(seed=seed)
        if seed is not None:
            self._next = seed
        seen = self._seen(self._env.reset())
        return seen, {"action_mask": seen["mask"]}

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take one action; one that is not legal ends the slot."""
        legal = bool(self._mask[action])
        observation, step = self._env.step(np.array([action if legal else 0]))
        reward = step.reward(self._reward)
        seen = self._seen(observation)
        info = {"action_mask": seen["mask"], "slot_end": bool(step.slot_end[0])}
        if step.done[0]:
            info["outcome"] = self._env.outcomes[-1]._asdict()
        return seen, float(reward[0]), bool(step.done[0]), False, info

    def _draw(self, _: int) -> Scenario:
        """Episodes follow one another, however often one was broken off."""
        self._next += 1
        return self._scenario(self._next - 1)

    def _seen(self, observation: Observation) -> Seen:
        """Cut or fill up to the fixed size."""
        jobs, cluster, mask = (array[0] for array in observation)
        self._mask = np.zeros(1 + ACTIONS * self._most, dtype=np.int8)
        some = min(mask.size, self._mask.size)
        self._mask[:some] = mask[:some]
        rows = np.zeros((self._most, jobs.shape[1]), dtype=np.float32)
        rows[: min(len(jobs), self._most)] = jobs[: self._most]
        if self._encoding == "matrix":
            rows = rows.T
        return {"jobs": rows, "cluster": cluster.copy(), "mask": self._mask}
