"""Make the demo's jobs: `python make_jobs.py > jobs.csv` gives the same bytes every time."""

from __future__ import annotations

import csv
import random
import sys
from typing import NamedTuple

SEED = 14
JOBS = 160
GAP_S = 100  # mean time between two arrivals


class Kind(NamedTuple):
    """A sort of jobs: how often it comes, and how many GPUs its jobs ask for."""

    model: str
    share: float
    gpus: tuple[int, ...]
    elastic: bool = False


KINDS = (
    Kind("", 0.10, (1, 2, 4, 8)),
    Kind("resnet18", 0.12, (1, 1, 2, 4)),
    Kind("mobilenet", 0.10, (1, 2, 4)),
    Kind("shufflenet", 0.10, (1, 2, 4)),
    Kind("bert-base", 0.08, (2, 4, 8)),
    Kind("resnet50", 0.12, (1, 2, 4), elastic=True),
    Kind("transformer", 0.12, (1, 2, 4), elastic=True),
    Kind("lstm", 0.05, (1, 1, 2), elastic=True),
    Kind("vgg16-ps", 0.08, (1, 2, 4), elastic=True),
    Kind("gnmt-ps", 0.08, (1, 2, 4), elastic=True),
    Kind("ncf-ps", 0.05, (1, 2)),
)
COLUMNS = ("job_id", "arrival_s", "gpus", "duration_s", "model", "min_gpus", "max_gpus")


def rows() -> list[tuple[object, ...]]:
    """Return one row per job."""
    rng = random.Random(SEED)
    now_s, made = 0.0, []
    for number in range(JOBS):
        kind = rng.choices(KINDS, [kind.share for kind in KINDS])[0]
        gpus = rng.choice(kind.gpus)
        duration_s = min(max(rng.lognormvariate(7.5, 1.0), 60), 4 * 3600)
        limits = (1, 4 * gpus) if kind.elastic else ("", "")
        made.append((f"job-{number:03d}", round(now_s), gpus, round(duration_s), kind.model, *limits))
        now_s += rng.expovariate(1 / GAP_S)
    return made


if __name__ == "__main__":
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(rows())
