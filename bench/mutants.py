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
from pathlib import Path
from random import Random
from typing import Any

from changes import Change, changes_in
from equivalent import EQUIVALENT
from reach import tests_for
from trial import copy_of, get_ready, run_some, watch

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "trainyard"
KEPT = ROOT / "out" / "mutants"
ROOMS = ("core", "state", "policy/choose", "policy/place", "policy/tune")
ENOUGH = 0.92
BUDGET_S = 60.0  # of tests of other folders: the quick ones first
SLOWER, START_S = 5.0, 20.0  # a change that makes tests so much slower is noticed
WATCH_S = 600.0


@dataclass(frozen=True)
class Verdict:
    """What became of one change."""

    number: int
    change: Change
    caught: str  # by what; nothing if it lives
    tests: int  # that reach it and were run
    seconds: float

    @property
    def room(self) -> str:
        """The folder of those that are counted."""
        return next(room for room in ROOMS if self.change.file.startswith(f"{room}/"))

    @property
    def why(self) -> str:
        """Why nobody can notice it, if that is known."""
        return EQUIVALENT.get((self.change.file, self.change.before, self.change.after), "")


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
        for verdict in pool.imap_unordered(work, chosen):
            verdicts.append(verdict)
            tell(verdict)
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
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
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


def tried(folder: Path, reached: dict[str, Any], numbered: tuple[int, Change]) -> Verdict:
    """Make one change, run the tests that reach it, take it back."""
    number, change = numbered
    copy, began = _copy(folder), time.monotonic()
    source = (PACKAGE / change.file).read_bytes()
    changed = copy / "src" / "trainyard" / change.file
    near, far = tests_for(change.file, change.function, reached)
    caught, tests = "", 0
    changed.write_bytes(change.applied(source))
    os.utime(changed, (began, 1_000_000_000 + number))  # else a compiled file may look up to date
    try:
        for some in (near, _within_budget(far, reached)):
            if some and not caught:
                tests += len(some)
                usual = sum(reached[test][0] for test in some)
                caught = run_some(copy, some, START_S + SLOWER * usual)
    finally:
        changed.write_bytes(source)
        os.utime(changed, (0, 0))
    return Verdict(number, change, caught, tests, time.monotonic() - began)


def _within_budget(tests: list[str], reached: dict[str, Any]) -> list[str]:
    left, some = BUDGET_S, []
    for test in tests:
        left -= reached[test][0]
        if left < 0:
            break
        some.append(test)
    return some


def _copy(folder: Path) -> Path:
    """Return the copy of this process."""
    copy = folder / f"copy-{os.getpid()}"
    return copy if copy.exists() else copy_of(ROOT, copy)


def tell(verdict: Verdict) -> None:
    """Print one line while it runs."""
    change, word = verdict.change, "caught" if verdict.caught else "LIVES"
    took = f"{verdict.seconds:>5.0f} s {verdict.tests:>5} tests"
    print(f"{verdict.number:>5} {word:<7}{took}  {change.file}:{change.line}  {change.kind}", flush=True)


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
        rooms[verdict.room].append(verdict)
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
