"""The networks in PyTorch, for training; policy/dl2/network.py has the same ones in NumPy, for deciding.

Both take what an environment shows, (B, J, features of a job) and (B, features of a cluster), and return
numbers for each job (B, J, k) and for the whole (B, 1). A policy has k = 3, its actions, and the rest is
stop; a value has k = 1, and is the sum of them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from trainyard.policy.size.dl2.arrays import ACTIONS

NetworkKind = Literal["set", "window"]
HIDDEN = {"set": 64, "window": 256}
NEVER = -1e9  # the logit of an action that is not legal


class SetNetwork(nn.Module):
    """Ours: permutation-equivariant over jobs, any number of them (DeepSets).

    Every job is embedded by the same layers; the mean and the largest of all embeddings, with the cluster,
    make a context; every job's numbers follow from its embedding and the context.
    """

    def __init__(self, of_job: int, of_cluster: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.embed1 = nn.Linear(of_job, hidden)
        self.embed2 = nn.Linear(hidden, hidden)
        self.context = nn.Linear(2 * hidden + of_cluster, hidden)
        self.own = nn.Linear(hidden, hidden)
        self.near = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, outputs)
        self.rest = nn.Linear(hidden, 1)

    def forward(self, jobs: Tensor, cluster: Tensor) -> tuple[Tensor, Tensor]:
        """Work on the jobs that are there only, one after another: most of a padded batch is empty."""
        at = jobs[..., 0].nonzero(as_tuple=True)
        count = jobs[..., 0].sum(dim=1).long()
        x = torch.relu(self.embed2(torch.relu(self.embed1(jobs[at]))))
        mean = torch.zeros(len(jobs), x.shape[1]).index_add(0, at[0], x) / count.clamp(min=1)[:, None]
        most = torch.segment_reduce(x, "max", lengths=count, initial=0.0)
        context = torch.relu(self.context(torch.cat([mean, most, cluster], dim=1)))
        y = torch.relu(self.own(x) + self.near(context)[at[0]])
        numbers = torch.zeros(*jobs.shape[:2], self.outputs).index_put(at, self.out(y))
        return numbers, self.rest(context)


class WindowNetwork(nn.Module):
    """The paper's: two hidden layers on the 6 x J matrix of the first J jobs; those behind are not seen."""

    def __init__(self, of_job: int, window: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.window, self.outputs = window, outputs
        self.first = nn.Linear(of_job * window, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, outputs * window + 1)

    def forward(self, jobs: Tensor, cluster: Tensor) -> tuple[Tensor, Tensor]:
        """Cut or fill up to the window; jobs beyond get the least of all numbers."""
        batch, width, of_job = jobs.shape
        seen = torch.zeros(batch, self.window, of_job)
        some = min(width, self.window)
        seen[:, :some] = jobs[:, :some]
        x = torch.relu(self.first(seen.transpose(1, 2).flatten(1)))
        y = self.out(torch.relu(self.second(x)))
        numbers = torch.full((batch, width, self.outputs), NEVER if self.outputs == ACTIONS else 0.0)
        numbers[:, :some] = y[:, 1:].reshape(batch, self.window, self.outputs)[:, :some]
        return numbers, y[:, :1]


Network = SetNetwork | WindowNetwork


def make(
    kind: NetworkKind, of_job: int, of_cluster: int, outputs: int, hidden: int = 0, window: int = 20
) -> Network:
    """Build a network of a kind; the seed of its first weights is torch's."""
    width = hidden or HIDDEN[kind]
    if kind == "set":
        return SetNetwork(of_job, of_cluster, width, outputs)
    return WindowNetwork(of_job, window, width, outputs)


def log_probs(policy: Network, jobs: Tensor, cluster: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities (B, 1 + 3J) of all actions; those that are not legal have none."""
    numbers, stop = policy(jobs, cluster)
    logits = torch.cat([stop, numbers.flatten(1)], dim=1)
    return torch.log_softmax(logits.masked_fill(~mask, NEVER), dim=1)


def entropy(logs: Tensor) -> Tensor:
    """Entropy (B,) over legal actions."""
    return -(logs.exp() * logs).sum(dim=1)


def value_of(value: Network, jobs: Tensor, cluster: Tensor) -> Tensor:
    """Values (B,): the sum of what each job adds, and the rest."""
    numbers, rest = value(jobs, cluster)
    total: Tensor = numbers.sum(dim=(1, 2)) + rest[:, 0]
    return total


def arrays_of(network: Network) -> dict[str, np.ndarray]:
    """Weights by name."""
    return {name: tensor.detach().numpy().copy() for name, tensor in network.state_dict().items()}


def load_arrays(network: Network, arrays: Mapping[str, np.ndarray]) -> None:
    """Take over weights."""
    network.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
