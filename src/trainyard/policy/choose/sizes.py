"""Which sizes of a job to try, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainyard.model.job import Job


def sizes_to_try(job: Job, gpus: int, smaller: Callable[[Job, int], Iterator[int]]) -> Iterator[int]:
    """Yield the chosen size, then smaller ones that the size stage and the job allow."""
    if gpus:
        yield gpus
        for size in smaller(job, gpus):
            if 0 < (size := job.allowed(size)) < gpus:
                yield (gpus := size)
