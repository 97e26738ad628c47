"""Would the tests notice? `make mutants` (or `python bench/mutants.py`).

It makes small wrong changes of the source, one at a time, in a copy, and runs the tests that reach what was
changed: first those of the same folder, then the others, until one fails. Prints the share that was caught,
and every change that was not, with the reason if `bench/equivalent.py` knows one. The changes come from
`bench/changes.py` in an order that the seed decides; `--only` takes a number, a range (21-40), a folder or a
file. Exit code 1 if fewer than 92 % were caught.

Which test reaches what is found out first, once, and kept in out/mutants/; it is asked anew for a test file
that changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from changes import Change, changes_in
from equivalent import EQUIVALENT
from reach import tests_for
from trial import IN_BODY, Trial, copy_of, get_ready, run_changed_file, run_changed_functions, watch

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "trainyard"
KEPT = ROOT / "out" / "mutants"
ROOMS = ("core", "state", "policy/choose", "policy/place", "policy/tune")
ASKED = ("tests/core", "tests/state", "tests/policy", "tests/sim")  # others reach the rooms through these
ENOUGH = 0.92
AT_ONCE = 20  # changes for which tests are collected once
NEAR_S, FAR_S = 12.0, 6.0  # of CPU for tests of the same room, and for the others: the quick ones first
WATCH_S = 600.0


@dataclass(frozen=True)
class Verdict:
    """What became of one change."""

    number: int
    change: Change
    caught: str  # by what; nothing if it lives
    tests: int  # that reach it and were run

    @property
    def why(self) -> str:
        """Why nobody can notice it, if that is known."""
        return EQUIVALENT.get((self.change.file, self.change.before, self.change.after), "")


def room_of(change: Change) -> str:
    """Return the folder of those that are counted."""
    return next(room for room in ROOMS if change.file.startswith(f"{room}/"))


def main() -> int:
    """Try all changes and say what was caught."""
    parser = argparse.ArgumentParser(description="Do the tests notice wrong changes of the source?")
    parser.add_argument("--seed", type=int, default=1, help="other changes")
    parser.add_argument("--count", type=int, default=240, help="how many of them")
    parser.add_argument("--only", help="a number, a range of them (21-40), a folder or a file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    args = parser.parse_args()
    get_ready()
    chosen = choose(args.seed, args.count, args.only)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("fork").Pool(args.jobs) as pool:
        reached = asked(pool, Path(folder))
        work = partial(tried, Path(folder), reached)
        verdicts = []
        chunks = [chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)]
        for some in pool.imap_unordered(work, chunks):
            verdicts += some
            live = [verdict.number for verdict in verdicts if not verdict.caught]
            print(f"{len(verdicts)} of {len(chosen)}, these live: {live}", flush=True)
    print(f"{time.monotonic() - began:.0f} s")
    return report(sorted(verdicts, key=lambda v: v.number))


def choose(seed: int, count: int, only: str | None) -> list[tuple[int, Change]]:
    """Draw changes; each keeps its number whatever `only` says."""
    files = sorted(file for room in ROOMS for file in (PACKAGE / room).rglob("*.py"))
    every = [change for file in files for change in changes_in(PACKAGE, str(file.relative_to(PACKAGE)))]
    Random(seed).shuffle(every)
    numbered = list(enumerate(every, 1))
    if only is None:
        return numbered[:count]
    first, _, last = only.partition("-")
    if first.isdecimal():
        return numbered[int(first) - 1 : int(last or first)]
    return [(number, change) for number, change in numbered if f"/{only}" in f"/{change.file}"][:count]


def asked(pool: Any, folder: Path) -> dict[str, Any]:
    """Find out what every test reaches, or read it if that was done before."""
    KEPT.mkdir(parents=True, exist_ok=True)
    files = sorted(
        str(file.relative_to(ROOT)) for folder in ASKED for file in (ROOT / folder).rglob("test_*.py")
    )
    reached: dict[str, Any] = {}
    for file, (told, failed) in zip(files, pool.imap(partial(ask, folder), files), strict=True):
        reached |= told
        for test in failed:
            print(f"not used, for it does not pass: {test} (in {file})")
    return reached


def ask(folder: Path, file: str) -> tuple[dict[str, Any], list[str]]:
    """Say what the tests of one file reach."""
    digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{file.replace('/', '.')}.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if known.get("digest") != digest:
        reached, failed = watch(_copy(folder), file, ROOMS, WATCH_S)
        known = {"digest": digest, "reached": reached, "failed": failed}
        kept.write_text(json.dumps(known))
    return known["reached"], known["failed"]


def tried(folder: Path, reached: dict[str, Any], some: list[tuple[int, Change]]) -> list[Verdict]:
    """Make some changes, one after the other."""
    trials = [_trial(change, reached) for _, change in some]
    copy = _copy(folder)
    answers = [
        run_changed_file(copy, trial) if answer == IN_BODY else answer
        for trial, answer in zip(trials, run_changed_functions(copy, trials), strict=True)
    ]
    return [
        Verdict(number, change, caught, len(trial.near) + len(trial.far))
        for (number, change), caught, trial in zip(some, answers, trials, strict=True)
    ]


def _trial(change: Change, reached: dict[str, Any]) -> Trial:
    source = change.applied((PACKAGE / change.file).read_bytes())
    compile(source, change.file, "exec")  # else it would be caught, and say nothing
    near, far = tests_for(change.file, change.function, room_of(change), reached)
    taken = [
        _affordable({test: reached[test][0] for test in tests}, seconds)
        for tests, seconds in ((near, NEAR_S), (far, FAR_S))
    ]
    return Trial(change.file, change.function, source, *taken)


def _affordable(tests: dict[str, float], seconds: float) -> dict[str, float]:
    """Take as many of the tests as there is time for, the first ones first."""
    within = sum(so_far <= seconds for so_far in accumulate(tests.values()))
    return dict(list(tests.items())[:within])


def _copy(folder: Path) -> Path:
    """Return the copy of this process."""
    copy = folder / f"copy-{os.getpid()}"
    return copy if copy.exists() else copy_of(ROOT, copy)


def report(verdicts: list[Verdict]) -> int:
    """Print those that live and the shares; return the exit code."""
    for verdict in verdicts:
        if not verdict.caught:
            change = verdict.change
            print(f"\n{verdict.number}  {change.file}:{change.line}  {change.kind}, {verdict.tests} tests")
            print(f"  - {change.before}\n  + {change.after}")
            print(f"  {verdict.why or 'no reason is known'}")
    rooms: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        rooms[room_of(verdict.change)].append(verdict)
        rooms["all"].append(verdict)
    print(f"\n{'folder':<16}{'changes':>8}{'caught':>8}{'share':>8}  live with a reason")
    for room in (*ROOMS, "all"):
        if of_room := rooms[room]:
            caught = sum(bool(verdict.caught) for verdict in of_room)
            known = sum(not verdict.caught and bool(verdict.why) for verdict in of_room)
            print(f"{room:<16}{len(of_room):>8}{caught:>8}{caught / len(of_room):>8.1%}  {known}")
    return 0 if sum(bool(verdict.caught) for verdict in verdicts) >= ENOUGH * len(verdicts) else 1


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # tests must do the same every time
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
