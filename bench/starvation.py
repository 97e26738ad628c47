"""Does anybody wait for ever? `make starvation` (or `python bench/starvation.py`).

It draws small workloads on odd clusters: short of CPUs or memory, one GPU a node, several GPU types, unlike
nodes; in part of them a restart costs something, or more than a round lasts. Each runs under every named
policy: all stages of the registry, the presets, and what the documentation names. Every job that fits at
some size on the empty cluster, by an exact search of its own, has to be done at the end. What is not is
printed, with the options that repeat it. The exit code is 1 if there was any.

The workloads stand in `tests/starvation_cases.py`, for a test runs a few of them.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from starvation_cases import Workload, failure, named_policies, random_workload


def main() -> int:
    """Run all workloads and say what was found."""
    parser = argparse.ArgumentParser(description="Look for jobs that wait for ever.")
    parser.add_argument("--seed", type=int, default=1, help="other workloads")
    parser.add_argument("--count", type=int, default=500, help="how many of them")
    parser.add_argument("--first", type=int, default=1, help="the number of the first of them")
    parser.add_argument("--policy", action="append", help="only this policy; may be given several times")
    args = parser.parse_args()
    policies = args.policy or list(named_policies())
    runs: Counter[str] = Counter()
    jobs: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for number in range(args.first, args.first + args.count):
        work = random_workload(Random(f"{args.seed}-{number}"))
        for policy in policies:
            runs[policy] += 1
            jobs[policy] += len(work.jobs)
            found = looked_at(policy, work)
            if found:
                failed[policy] += 1
                repeat = f"--seed {args.seed} --first {number} --count 1 --policy '{policy}'"
                print(f"FAILS ({repeat}) {found}", flush=True)
    for policy in policies:
        print(f"{policy:<50}{runs[policy]:>7,} runs{jobs[policy]:>8,} jobs{failed[policy]:>6,} failed")
    print(f"{runs.total():,} runs, {jobs.total():,} jobs, {failed.total():,} runs failed,", end=" ")
    print(f"{time.process_time():.0f} s of CPU")
    return 1 if failed else 0


def looked_at(policy: str, work: Workload) -> str:
    """Run one; what a stage raises counts as a failure."""
    try:
        return failure(policy, work)
    except Exception as error:
        return "raised " + "".join(traceback.format_exception(error)[-4:])


if __name__ == "__main__":
    sys.exit(main())
