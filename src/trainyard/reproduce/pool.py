"""Many independent tasks on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def in_parallel(
    work: Callable[[Task], Answer], tasks: Iterable[Task], tell: Callable[[int], None]
) -> dict[Task, Answer]:
    """Do every task once, in the given order, and tell how many are done."""
    answers: dict[Task, Answer] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        futures = {pool.submit(work, task): task for task in dict.fromkeys(tasks)}
        try:
            for future in as_completed(futures):
                answers[futures[future]] = future.result()
                tell(len(answers))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return answers
