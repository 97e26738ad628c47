"""What past jobs were: how long a job like this one is going to be, given how long it has run already.

Every job that ran counts, however it ended: what is predicted is how long a job keeps its GPUs. The memory is
bounded, and follows from the events alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trainyard.model.estimate import Estimate, from_totals, heavy_tail
from trainyard.model.job import Job

KEPT = 64  # totals of jobs that are alike, the last ones
SITE_KEPT = 512  # totals of all jobs
MOST_KEYS = 1024  # the key that was added to longest ago is forgotten
LEAST = 3  # totals longer than what a job has done; with fewer, jobs that are less alike are asked
AHEAD = 1 + 1e-9  # a total that a job has reached but for rounding is not longer

Key = tuple[str | int, ...]
NAMES: Final = {
    0: (),
    2: ("tenant", "model"),
    4: ("tenant", "user", "model", "gpus"),
}  # of a key's parts


class Totals:
    """The last totals of some jobs, in seconds: by age and by size."""

    __slots__ = ("by_age", "by_size", "most")

    def __init__(self, most: int, totals: Iterable[float] = ()) -> None:
        self.most = most
        self.by_age = deque(totals, most)
        self.by_size = sorted(self.by_age)

    def add(self, total_s: float) -> None:
        """Keep one more, and forget the oldest if there are too many."""
        if len(self.by_age) == self.most:
            del self.by_size[bisect_left(self.by_size, self.by_age.popleft())]
        self.by_age.append(total_s)
        insort(self.by_size, total_s)

    def longer(self, attained_s: float) -> list[float]:
        """Return those that are longer, sorted."""
        return self.by_size[bisect_right(self.by_size, attained_s * AHEAD) :]


class History:
    """Totals of past jobs by tenant, user, model and GPUs, then by tenant and model, then of the site."""

    def __init__(self) -> None:
        self._totals: OrderedDict[Key, Totals] = OrderedDict()
        self._site = Totals(SITE_KEPT)

    def add(self, job: Job, total_s: float) -> None:
        """A job is over that did so much work; one that did nothing tells nothing."""
        if not total_s > 0:
            return
        self._site.add(total_s)
        for key in _keys(job):
            totals = self._totals.get(key)
            if totals is None:
                totals = self._totals[key] = Totals(KEPT)
            totals.add(total_s)
            self._totals.move_to_end(key)
        while len(self._totals) > MOST_KEYS:
            self._totals.popitem(last=False)

    def estimate(self, job: Job, attained_s: float = 0.0) -> Estimate:
        """Return how much work a job is in all that has done so much already."""
        for key in _keys(job):
            totals = self._totals.get(key)
            if totals is not None:
                longer = totals.longer(attained_s)
                if len(longer) >= LEAST:
                    return from_totals(longer)
        longer = self._site.longer(attained_s)
        return from_totals(longer) if longer else heavy_tail(attained_s)

    def copy(self) -> History:
        """Return an independent copy."""
        return restored(self.record())

    def record(self) -> list[dict[str, Any]]:
        """Return it as data for a file, the site first; `restored` makes the same of it again."""
        known = [((), self._site), *self._totals.items()]
        return [
            dict(zip(NAMES[len(key)], key, strict=True)) | {"totals_s": list(totals.by_age)}
            for key, totals in known
            if totals.by_age
        ]


def restored(kept: Iterable[Mapping[str, Any]]) -> History:
    """Take in what an earlier life knew."""
    history = History()
    for entry in kept:
        key = tuple(entry[name] for name in NAMES[4] if name in entry)
        if key:
            history._totals[key] = Totals(KEPT, entry["totals_s"])
        else:
            history._site = Totals(SITE_KEPT, entry["totals_s"])
    return history


def _keys(job: Job) -> tuple[Key, Key]:
    """Return by what jobs are alike, closest first; a field that jobs do not have yet counts as empty."""
    what = job.model or getattr(job, "name", "")
    return (job.tenant, getattr(job, "user", ""), what, job.gpus), (job.tenant, what)
