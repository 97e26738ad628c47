"""What finishing a job after some time is worth: never more the later it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trainyard.model.arrays import Floats


class Utility(Protocol):
    """The utility of each job's completion time."""

    def __call__(self, completion: Floats) -> Floats:
        """Return what the completion times are worth, at least 0 and never rising."""
        ...


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """The utility of SMD: height / (1 + exp(steepness (t - middle))), a soft deadline."""

    height: Floats | float
    steepness: Floats | float
    middle: Floats | float

    def __call__(self, completion: Floats) -> Floats:
        """Return the values."""
        from scipy.special import expit  # does not overflow; loaded only by those who need it

        worth: Floats = self.height * expit(self.steepness * (self.middle - completion))
        return worth


@dataclass(frozen=True, slots=True)
class Inverse:
    """Half the time, twice the worth: scale / t, and no more than 1 from `scale` down."""

    scale: Floats | float = 1.0

    def __call__(self, completion: Floats) -> Floats:
        """Return the values."""
        worth: Floats = self.scale / np.maximum(completion, self.scale)
        return worth


@dataclass(frozen=True, slots=True)
class Linear:
    """1 at once, nothing from `limit` on."""

    limit: Floats | float

    def __call__(self, completion: Floats) -> Floats:
        """Return the values."""
        worth: Floats = np.maximum(0.0, 1.0 - completion / self.limit)
        return worth


@dataclass(frozen=True, slots=True)
class Deadline:
    """1 if the deadline is met."""

    deadline: Floats | float

    def __call__(self, completion: Floats) -> Floats:
        """Return the values."""
        worth: Floats = (completion <= self.deadline).astype(np.float64)
        return worth
