"""The trained networks in plain NumPy, for deciding one slot; learn/networks.py has the same ones in PyTorch.

An action changes the numbers of one job and of the cluster. Everything that depends on a job alone is kept
and worked out anew only for jobs that changed, so a decision costs little even among many jobs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from trainyard.errors import InputError
from trainyard.model.arrays import Ints
from trainyard.policy.size.dl2.arrays import ACTIONS, Singles

NEVER = -1e9  # of jobs that the network does not see


class Network(ABC):
    """Gives every action of a slot a number: the likelier, the larger."""

    @abstractmethod
    def open(self, jobs: Singles) -> None:
        """Take in the numbers (J, features) of all jobs of a slot."""

    @abstractmethod
    def change(self, which: Ints, jobs: Singles) -> None:
        """Take in new numbers (n, features) of some jobs."""

    @abstractmethod
    def logits(self, cluster: Singles) -> Singles:
        """Return (1 + 3J,): stop, and the actions of each job."""


class SetNetwork(Network):
    """Ours, for any number of jobs."""

    def __init__(self, arrays: Mapping[str, Singles]) -> None:
        self.embed1, self.embed2, self.context, self.own, self.out, self.rest = (
            (arrays[f"{name}.weight"].T.copy(), arrays[f"{name}.bias"])
            for name in ("embed1", "embed2", "context", "own", "out", "rest")
        )
        self.near: Singles = arrays["near.weight"].T.copy()

    def open(self, jobs: Singles) -> None:
        """Embed all jobs."""
        self._x, self._own = self._embed(jobs)
        self._sum: Singles = self._x.sum(axis=0)

    def change(self, which: Ints, jobs: Singles) -> None:
        """Embed these anew."""
        x, own = self._embed(jobs)
        self._sum += (x - self._x[which]).sum(axis=0)
        self._x[which], self._own[which] = x, own

    def logits(self, cluster: Singles) -> Singles:
        """Work out the context, then each job's numbers."""
        pooled = np.concatenate([self._sum / len(self._x), self._x.max(axis=0), cluster])
        context = np.maximum(pooled @ self.context[0] + self.context[1], 0.0)
        y = self._own + context @ self.near
        np.maximum(y, 0.0, out=y)
        numbers = y @ self.out[0] + self.out[1]
        return np.concatenate([context @ self.rest[0] + self.rest[1], numbers.ravel()])

    def _embed(self, jobs: Singles) -> tuple[Singles, Singles]:
        x = np.maximum(jobs @ self.embed1[0] + self.embed1[1], 0.0)
        x = np.maximum(x @ self.embed2[0] + self.embed2[1], 0.0)
        return x, x @ self.own[0] + self.own[1]


class WindowNetwork(Network):
    """The paper's network: it sees a fixed number of jobs, the first ones."""

    def __init__(self, arrays: Mapping[str, Singles]) -> None:
        self.first, self.second, self.out = (
            (arrays[f"{name}.weight"].T.copy(), arrays[f"{name}.bias"]) for name in ("first", "second", "out")
        )
        self.window = (self.out[1].size - 1) // ACTIONS

    def open(self, jobs: Singles) -> None:
        """Take the first ones."""
        self._count = len(jobs)
        self._seen: Singles = np.zeros((self.window, jobs.shape[1]), dtype=np.float32)
        some = min(len(jobs), self.window)
        self._seen[:some] = jobs[:some]

    def change(self, which: Ints, jobs: Singles) -> None:
        """Take the new numbers of those that are seen."""
        near = which < self.window
        self._seen[which[near]] = jobs[near]

    def logits(self, cluster: Singles) -> Singles:
        """Two hidden layers on everything at once."""
        x = np.maximum(self._seen.T.ravel() @ self.first[0] + self.first[1], 0.0)
        x = np.maximum(x @ self.second[0] + self.second[1], 0.0)
        found: Singles = np.full(1 + ACTIONS * self._count, NEVER, dtype=np.float32)
        some = min(found.size, 1 + ACTIONS * self.window)
        found[:some] = (x @ self.out[0] + self.out[1])[:some]
        return found


def network_of(kind: str, arrays: Mapping[str, Singles], where: str) -> Network:
    """Build the network of a weights file."""
    makes = {"set": SetNetwork, "window": WindowNetwork}
    try:
        return makes[kind](arrays)
    except KeyError as error:
        raise InputError(
            f"{error} is missing; name a file that 'trainyard train' wrote", where=where
        ) from None
