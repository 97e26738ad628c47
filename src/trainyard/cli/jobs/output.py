"""The output of a job as it comes, from one attempt to the next, of one rank or of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainyard.cli.client.link import Job, Link
from trainyard.cli.jobs.sinks import Attempt, Sink
from trainyard.cli.shown.job import OVER

MOST_BELLS = 8  # ranks whose output makes a follower look


class Output:
    """Hands on what a job printed since the last time."""

    def __init__(
        self, link: Link, job: Job, sink: Sink, rank: int | None = 0, attempt: int | None = None
    ) -> None:
        """Begin with an attempt; `rank` None: of all workers."""
        self._link, self._sink, self._rank = link, sink, rank
        self._from = attempt or max(job["attempt"], 1)
        self._last = attempt  # None: there may be more
        self._tail: int | None = None
        self._current = 0
        self._offsets: dict[int, int | None] = {}  # None: nothing was read yet, and only the tail is wanted
        self.job = job

    def only_last(self, lines: int | None) -> None:
        """Leave out all but the last lines of the first attempt shown."""
        self._tail = lines

    @property
    def topics(self) -> list[str]:
        """What a follower has to hear of; it hears of the first ranks of many, and looks at all."""
        job_id, most = self.job["job_id"], min(max(self.job["max_gpus"], 1), MOST_BELLS)
        return [f"job:{job_id}", *(f"log:{job_id}.{rank}" for rank in self._ranks(most))]

    def hand_on(self) -> bool:
        """Hand on what is new; returns whether nothing will follow."""
        self.job = self._link.get(f"/jobs/{self.job['job_id']}")
        for attempt in self.job["attempts"]:
            if self._wants(attempt["attempt"]):
                self._hand_on(attempt)
        return self.job["state"] in OVER or (self._last is not None and self._is_over(self._last))

    def _wants(self, attempt: int) -> bool:
        return attempt >= max(self._current, self._from) and self._last in (None, attempt)

    def _is_over(self, number: int) -> bool:
        return all(row["ended_s"] is not None for row in self.job["attempts"] if row["attempt"] == number)

    def _hand_on(self, attempt: Attempt) -> None:
        if attempt["attempt"] != self._current:
            self._turn_to(attempt)
        for rank in self._offsets:
            for data in self._new(rank):
                self._sink.add(rank, data)

    def _turn_to(self, attempt: Attempt) -> None:
        """Begin with another attempt; of the one before, all was handed on."""
        if self._current:
            self._sink.end()
        self._sink.begin(attempt)
        workers = sum(has["gpus"] for has in attempt["nodes"].values())
        self._current = attempt["attempt"]
        self._offsets = dict.fromkeys(self._ranks(max(workers, 1)), None if self._tail is not None else 0)

    def _ranks(self, workers: int) -> Iterable[int]:
        return range(workers) if self._rank is None else (self._rank,)

    def _new(self, rank: int) -> Iterator[bytes]:
        while True:
            offset = self._offsets[rank]
            # One line at least is asked for: the answer says where the output ends.
            place = {"lines": max(self._tail or 0, 1)} if offset is None else {"offset": offset}
            path = f"/jobs/{self.job['job_id']}/logs"
            data, header = self._link.read(path, attempt=self._current, rank=rank, **place)
            self._offsets[rank] = int(header["trainyard-offset"])
            if data and (offset is not None or self._tail):
                yield data
            elif offset is not None:
                return
