"""What has been seen of jobs while they ran: their speeds at each size, and their losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainyard.model.arrays import Floats
from trainyard.model.profile import Loss

RECENT = 200  # losses that are looked at, the last ones
Ran = dict[tuple[int, int], tuple[float, float]]  # (workers, servers) -> seconds and samples at this size


class Observed:
    """Speeds and losses of active jobs that may change size; where GPU types differ, time on each."""

    def __init__(self) -> None:
        self._ran: dict[str, Ran] = {}
        self._losses: dict[str, list[tuple[float, float]]] = {}  # -> samples done, loss
        self.type_s: dict[str, list[float]] = {}  # -> seconds on each GPU type, up to the last stop

    def ran(self, job_id: str, size: tuple[int, int], seconds: float, samples: float) -> None:
        """A job ran at this size for some seconds and did some samples."""
        _add(self._ran.setdefault(job_id, {}), size, seconds, samples)

    def held(self, job_id: str, workers: list[int], seconds: float) -> None:
        """A job gave back its workers of each type after so long."""
        before, each = self.type_s.get(job_id), seconds / max(sum(workers), 1)
        spent = [count * each for count in workers]
        self.type_s[job_id] = spent if before is None else [a + b for a, b in zip(before, spent, strict=True)]

    def reported(self, job_id: str, samples_done: float, loss: float) -> None:
        """A job told its loss; before it has done anything that says nothing."""
        if samples_done > 0 and loss > 0:
            self._losses.setdefault(job_id, []).append((samples_done, loss))

    def forget(self, job_id: str) -> None:
        """The job is over."""
        self._ran.pop(job_id, None)
        self._losses.pop(job_id, None)
        self.type_s.pop(job_id, None)

    def seen(self, job_id: str, now: tuple[tuple[int, int], float, float] | None) -> Ran:
        """Return all sizes a job has run at; `now` is (size, seconds, samples) of its present run."""
        sizes = self._ran.get(job_id, {})
        if now is not None:
            sizes = sizes.copy()
            _add(sizes, *now)
        return sizes

    def losses(self, job_id: str, curve: Loss | None, samples_done: float) -> tuple[Floats, Floats]:
        """Return samples done and loss at each report; a job without any follows its profile's curve."""
        told = self._losses.get(job_id, [])
        if told or curve is None:
            points = np.array(told[-RECENT:], dtype=np.float64).reshape(-1, 2)
            return points[:, 0], points[:, 1]
        last = int(samples_done / curve.epoch_samples)
        epochs = np.arange(max(1, last + 1 - RECENT), last + 1, dtype=np.float64)
        return epochs * curve.epoch_samples, 1.0 / (curve.b0 * epochs + curve.b1) + curve.b2

    def record(self, job_id: str) -> dict[str, list[Any]]:
        """Return what was seen of a job as data for a file; `restore` takes it in again."""
        ran = [[*size, *seen] for size, seen in self._ran.get(job_id, {}).items()]
        losses = [list(told) for told in self._losses.get(job_id, [])]
        found: dict[str, list[Any]] = {"ran": ran, "losses": losses, "type_s": self.type_s.get(job_id, [])}
        return {name: seen for name, seen in found.items() if seen}

    def restore(self, job_id: str, seen: Mapping[str, Any]) -> None:
        """Take in what was seen of a job in an earlier life."""
        if "ran" in seen:
            self._ran[job_id] = {(int(w), int(p)): (s, done) for w, p, s, done in seen["ran"]}
        if "losses" in seen:
            self._losses[job_id] = [(samples, loss) for samples, loss in seen["losses"]]
        if "type_s" in seen:
            self.type_s[job_id] = list(seen["type_s"])

    def copy(self) -> Observed:
        """Return an independent copy."""
        twin = Observed()
        twin._ran = {job_id: sizes.copy() for job_id, sizes in self._ran.items()}
        twin._losses = {job_id: list(told) for job_id, told in self._losses.items()}
        twin.type_s = dict(self.type_s)
        return twin


def _add(ran: Ran, size: tuple[int, int], seconds: float, samples: float) -> None:
    if samples <= 0:
        return  # a moment too short to tell a speed
    before = ran.get(size, (0.0, 0.0))
    ran[size] = (before[0] + seconds, before[1] + samples)
