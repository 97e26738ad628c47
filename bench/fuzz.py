"""Does anything fall over on wrong input? `make fuzz` (or `python bench/fuzz.py`).

It takes small valid files of every kind, and the commands that read them, makes one to three things of them
odd, and runs each in this process. Every command must end with exit code 0 or 2, within 10 s of CPU time and
1 GB; wrong input is told in one line. Each failure is printed with the options that repeat it, and the exit
code is 1 if there is any.

What is run stands in `tests/fuzz_cases.py`, for a test does the same with a few cases.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fuzz_cases import Verdict, judged, made


def main() -> int:
    """Run all cases and say what became of them."""
    parser = argparse.ArgumentParser(description="Run commands on input that is wrong.")
    parser.add_argument("--seed", type=int, default=1, help="other cases")
    parser.add_argument("--count", type=int, default=10_000, help="how many of them")
    parser.add_argument("--first", type=int, default=1, help="the number of the first one")
    parser.add_argument("--only", type=int, help="repeat the case of this number and show it")
    parser.add_argument("--keep", help="with --only: leave the files of the case in this folder")
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.count) if args.only is None else [args.only]
    if args.only is not None:
        show(args.seed, args.only, args.keep)
    outcomes: Counter[tuple[str, str]] = Counter()
    failures, slowest, largest = 0, 0.0, 0
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            verdict = judged(args.seed, number, Path(folder))
            outcomes[verdict.command, verdict.outcome] += 1
            if number % 1000 == 0:
                print(f"{number:,} ...", file=sys.stderr, flush=True)
            slowest, largest = max(slowest, verdict.cpu_s), max(largest, verdict.bytes)
            if verdict.wrong or args.only is not None:
                failures += verdict.wrong
                print(told(verdict, f"--seed {args.seed} --only {number}"), flush=True)
    for (command, outcome), count in sorted(outcomes.items()):
        print(f"  {command:<16}{outcome:<24}{count:>7,}")
    print(f"{len(numbers):,} cases, {failures} failures; {time.process_time() - began:.0f} s of CPU")
    print(f"the longest took {slowest:.2f} s, the largest {largest / 2**20:.0f} MiB more than all before")
    return 1 if failures else 0


def told(verdict: Verdict, repeat: str) -> str:
    """Describe one case."""
    mark = "FAILED" if verdict.wrong else "fine"
    head = f"{mark} ({repeat}) {verdict.command}: {verdict.outcome}, {verdict.cpu_s:.2f} s"
    said = verdict.said.encode(errors="backslashreplace").decode()
    return f"{head}; odd: {'; '.join(verdict.how)}\n{said}"


def show(seed: int, number: int, keep: str | None) -> None:
    """Print the command line of a case, and keep its files if that is wanted."""
    case, _ = made(seed, number)
    print(ascii(case.argv))
    for name, data in case.files.items() if keep else ():
        (Path(keep or "") / name).write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
