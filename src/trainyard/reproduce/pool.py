"""Many independent tasks on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from typing import TypeVar

from trainyard.sim.workers import Workers

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def in_parallel(
    work: Callable[[Task], Answer], tasks: Iterable[Task], tell: Callable[[int], None]
) -> dict[Task, Answer]:
    """Do every task once, in the given order, and tell how many are done."""
    answers: dict[Task, Answer] = {}
    with Workers(os.cpu_count()) as pool:
        futures = {pool.submit(work, task): task for task in dict.fromkeys(tasks)}
        for future in as_completed(futures):
            answers[futures[future]] = future.result()
            tell(len(answers))
    return answers
