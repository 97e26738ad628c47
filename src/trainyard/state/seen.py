"""What has been seen of one job while it ran: speeds at each size, losses, time on each GPU type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.profile import Loss

RECENT = 200  # losses that are looked at, the last ones
Ran = dict[tuple[int, int], tuple[float, float]]  # (workers, servers) -> seconds and samples at this size


@dataclass(slots=True)
class Seen:
    """Speeds and losses of a job that may change size; where GPU types differ, its time on each."""

    ran: Ran = field(default_factory=dict)
    losses: list[tuple[float, float]] = field(default_factory=list)  # samples done, loss
    type_s: list[float] = field(default_factory=list)  # seconds on each GPU type, up to the last stop

    def ran_at(self, size: tuple[int, int], seconds: float, samples: float) -> None:
        """The job ran at this size for some seconds and did some samples."""
        if samples > 0:  # else the moment was too short to tell a speed
            before = self.ran.get(size, (0.0, 0.0))
            self.ran[size] = (before[0] + seconds, before[1] + samples)

    def held(self, workers: list[int], seconds: float) -> None:
        """The job gave back its workers of each type after so long."""
        each = seconds / max(sum(workers), 1)
        spent = [count * each for count in workers]
        self.type_s = [a + b for a, b in zip_longest(self.type_s, spent, fillvalue=0.0)]  # types may be new

    def reported(self, samples_done: float, loss: float) -> None:
        """The job told its loss; before it has done anything that says nothing."""
        if samples_done > 0 and loss > 0:
            self.losses.append((samples_done, loss))
            if len(self.losses) > 2 * RECENT:  # a job may report for months
                del self.losses[:-RECENT]

    def record(self) -> dict[str, list[Any]]:
        """Return it as data for a file; `restored` makes the same of it again."""
        ran = [[*size, *seen] for size, seen in self.ran.items()]
        found: dict[str, list[Any]] = {
            "ran": ran,
            "losses": [list(told) for told in self.losses],
            "type_s": self.type_s,
        }
        return {name: seen for name, seen in found.items() if seen}

    def copy(self) -> Seen:
        """Return an independent copy."""
        return Seen(self.ran.copy(), self.losses.copy(), self.type_s)


def restored(seen: Mapping[str, Any]) -> Seen | None:
    """Take in what was seen of a job in an earlier life; None if that is nothing."""
    ran = {(int(w), int(p)): (s, done) for w, p, s, done in seen.get("ran", ())}
    losses = [(samples, loss) for samples, loss in seen.get("losses", ())]
    type_s = list(seen.get("type_s", ()))
    return Seen(ran, losses, type_s) if ran or losses or type_s else None


def losses_of(seen: Seen | None, curve: Loss | None, samples_done: float) -> tuple[Floats, Floats]:
    """Return samples done and loss at each report; a job without any follows its profile's curve."""
    told = seen.losses if seen is not None else []
    if told or curve is None:
        points = np.array(told[-RECENT:], dtype=np.float64).reshape(-1, 2)
        return points[:, 0], points[:, 1]
    last = int(samples_done / curve.epoch_samples)
    epochs = np.arange(max(1, last + 1 - RECENT), last + 1, dtype=np.float64)
    return epochs * curve.epoch_samples, 1.0 / (curve.b0 * epochs + curve.b1) + curve.b2
