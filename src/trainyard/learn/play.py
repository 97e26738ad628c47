"""Playing episodes with a network: how well does it do?"""

from __future__ import annotations

import numpy as np
import torch

from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Outcome, Source
from trainyard.learn.networks import Network, log_probs
from trainyard.model.arrays import Floats, Ints
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import Observation


def logs_of(policy: Network, seen: Observation) -> Singles:
    """Log-probabilities of all actions."""
    with torch.no_grad():
        logs: Singles = log_probs(policy, *(torch.from_numpy(array) for array in seen)).numpy()
    return logs


def sampled(logs: Singles, rng: np.random.Generator) -> Ints:
    """Draw an action of each row (the largest after Gumbel noise)."""
    noise: Floats = -np.log(rng.standard_exponential(logs.shape))
    actions: Ints = (logs + noise).argmax(axis=1)
    return actions


def play(
    policy: Network,
    source: Source,
    episodes: int,
    features: Features,
    rng: np.random.Generator | None = None,
    batch: int = 16,
    shell: Policy | None = None,
) -> list[Outcome]:
    """Play the first episodes, with the likeliest actions or, with `rng`, drawn ones; by number.

    `shell` says who goes first and where jobs run.
    """
    env = BatchEnv(source, min(batch, episodes), shell, features, episodes=episodes)
    seen = env.reset()
    while not env.idle:
        logs = logs_of(policy, seen)
        seen, _ = env.step(logs.argmax(axis=1) if rng is None else sampled(logs, rng))
    return sorted(env.outcomes)


def mean_jct(outcomes: list[Outcome]) -> float:
    """Average JCT in slots."""
    return float(np.mean([outcome.avg_jct for outcome in outcomes]))
