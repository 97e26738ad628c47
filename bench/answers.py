"""Does this checkout give the same answers as another commit? `make answers` (or `python bench/answers.py`).

It runs 40 simulations with both, over every stage that the other commit knows, and compares text with text:
the keys of `simulate --json` except timings, and the columns of jobs.csv. Keys and columns that only this
checkout has do not count. The exit code is 1 if a run differs that EXPECTED does not name.
`--time` measures user CPU against the other commit instead; it prints ratios and judges nothing.

Only the command line is used, so files may move. The inputs are in `bench/workloads.py`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from workloads import write_clusters, write_failures, write_jobs

ROOT = Path(__file__).resolve().parents[1]
AGAINST = "f43d683"
START = "from trainyard.cli.main import run; run()"

# Runs that differ on purpose: name -> why.
EXPECTED: dict[str, str] = {
    "typed/gavel": "no turn is shorter than ten restarts",
    "typed/gavel(objective=ftf,round_s=600)": "rounds go by the last decision",
    "typed/hadar": "no turn is shorter than ten restarts",
    "servers/srtf+smd": "who has waited too long is admitted first",
    "servers/smd(solver=milp,utility=step,charge=used)+spread": "who has waited too long is admitted first",
}

# Workload -> its jobs file, its cluster, and options that go with it.
WORKLOADS = {
    "philly": ("philly.csv", "wide", ""),
    "models": ("models.csv", "lab", ""),
    "rings": ("rings.jsonl", "lab", ""),
    "servers": ("servers.jsonl", "slots", ""),
    "mixed": ("mixed.jsonl", "lab", "--profiles profiles.json"),
    "typed": ("typed.jsonl", "types", "--profiles profiles.json"),
}
GENERATED = {
    "philly.csv": "--preset philly --jobs 600 --seed 1",
    "models.csv": "--preset poisson --jobs 150 --seed 2 --rate-per-h 20 --gpus 1:0.5,2:0.2,4:0.2,8:0.1 "
    "--duration-s 4000 --models alexnet:2,resnet18:2,m5:1,deepspeech2:1,bert-base:1,gnmt:1,vgg16:1",
}

# Workload, policy, options: "--failures" and "--mtbf-h" make nodes fail.
RUNS = (
    ("philly", "fifo", ""),
    ("philly", "easy", "--start-s 20"),
    ("philly", "fifo(fill=greedy)+spread", "--round-s 60"),
    ("philly", "sjf(fill=easy)+random", "--seed 3"),
    ("philly", "srtf", "--restart-s 60 --failures failures.csv"),
    ("philly", "srsf+fixed", "--round-s 300 --restart-s 30"),
    ("philly", "las", "--mtbf-h 400 --repair-h 2 --seed 2"),
    ("philly", "las(queues=3,threshold_gpu_s=3600:36000)+pack(consolidate=require)", "--restart-s 30"),
    ("philly", "tiresias", "--restart-s 30 --until-s 60000"),
    ("philly", "ftf+even", "--round-s 300 --start-s 10"),
    ("models", "synergy", "--restart-s 30"),
    ("models", "sjf+greedy", "--mtbf-h 60 --seed 5"),
    ("models", "srtf+opt", "--round-s 300"),
    ("models", "las+proportional+tetris", "--failures failures.csv"),
    ("models", "ftf+tune+tetris", "--round-s 300 --restart-s 15"),
    ("rings", "srtf+doubling", "--restart-s 10"),
    ("rings", "las+doubling(mode=explore,explore_s=60)+tune", ""),
    ("rings", "srtf+dl2(weights=philly)", "--round-s 600 --seed 4"),
    ("rings", "ftf+drf+spread", "--failures failures.csv"),
    ("rings", "srtf+optimus(mode=learn)", "--round-s 120"),
    ("servers", "srtf+dl2", "--round-s 300 --seed 6"),
    ("servers", "dl2(draw=best,fallback=lookahead)+even", "--round-s 300"),
    ("servers", "srtf+smd", ""),
    ("servers", "smd(solver=milp,utility=step,charge=used)+spread", "--round-s 300"),
    ("servers", "srsf+smd(solver=frieze-clarke,utility=linear)", "--until-s 6000"),
    ("servers", "srtf+lookahead(ahead=3)", ""),
    ("servers", "srtf+steepest", "--round-s 300 --restart-s 20"),
    ("mixed", "srtf+optimus+even+tune", "--restart-s 30 --mtbf-h 80 --seed 7"),
    ("mixed", "las+drf(demand=best)+greedy", "--restart-s 30 --until-s 12000"),
    ("mixed", "srtf+steepest(hysteresis=false)+opt", "--round-s 600 --until-s 15000"),
    ("mixed", "srtf+doubling(hysteresis=false)+random", "--seed 8 --start-s 15"),
    ("typed", "market", "--restart-s 30"),
    ("typed", "market(engine=category)", "--round-s 300"),
    ("typed", "market(samples=16,gamma=1.5,fair=0.8)+tune", "--round-s 300"),
    ("typed", "gavel", "--restart-s 20"),
    ("typed", "gavel(objective=ftf,round_s=600)", "--mtbf-h 60 --seed 9 --until-s 10000"),
    ("typed", "allox(alpha=0.5)", ""),
    ("typed", "sia(p=-1,round_s=300)", "--start-s 20 --until-s 10000"),
    ("typed", "hadar", "--until-s 20000"),
    ("typed", "srtf+smd(utility=inverse)+tetris", "--round-s 300"),
)

TIMED = ("fifo", "srtf", "las")
TIMED_JOBS = "--preset philly --jobs 20000 --seed 1"
TIMED_NODES = {"nodes": [{"count": 160, "gpus": 8}]}
PAIRS = 7

Answer = dict[str, list[str]]  # key of the summary -> its one value; column of jobs.csv -> its cells


@dataclass(frozen=True)
class Run:
    """One simulation: its name is workload/policy."""

    workload: str
    policy: str
    options: str

    @property
    def name(self) -> str:
        """Return what EXPECTED and --only call it."""
        return f"{self.workload}/{self.policy}"

    def arguments(self) -> list[str]:
        """Return the command line, files by their names in the working directory."""
        jobs, cluster, more = WORKLOADS[self.workload]
        files = ["--cluster", f"{cluster}.yaml", "--jobs", jobs, *more.split()]
        return ["simulate", *files, "--policy", self.policy, *self.options.split()]


@dataclass(frozen=True)
class Checkout:
    """A source tree, and the directory in which its command line runs."""

    label: str
    source: Path
    directory: Path

    def start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        """Start the command line of this tree."""
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            cwd=self.directory,
            env={**os.environ, **threads, "PYTHONPATH": str(self.source)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, arguments: Sequence[str]) -> str:
        """Run it and return what it prints; raise RuntimeError with its message where it fails."""
        with self.start(arguments) as process:
            printed, message = process.communicate()
        if process.returncode:
            why = (message.strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"{self.label} exits with {process.returncode}: {why}")
        return printed

    def answer(self, run: Run) -> Answer:
        """Simulate; return all cells as the text that they are."""
        with tempfile.TemporaryDirectory() as out:
            printed = self.ask([*run.arguments(), "--json", "--out", out])
            rows = list(csv.reader(io.StringIO((Path(out) / "jobs.csv").read_text())))
        summary = json.loads(printed, parse_float=str, parse_int=str)
        found = {key: [json.dumps(value).strip('"')] for key, value in summary.items() if not timing(key)}
        return found | {f"jobs.csv {name}": list(cells) for name, *cells in zip(*rows, strict=True)}


def timing(key: str) -> bool:
    """Whether a key of the summary depends on the clock."""
    return key == "wall_s" or key.endswith("_ms")


# -- comparing ----------------------------------------------------------------------------------------------


def differences(old: Answer, new: Answer) -> list[str]:
    """Say what of the old answer is not in the new one."""
    return [said for key, cells in old.items() if (said := _difference(key, cells, new.get(key)))]


def _difference(key: str, old: list[str], new: list[str] | None) -> str:
    if new is None:
        return f"{key} is gone"
    if len(old) != len(new):
        return f"{key} has {len(new)} rows, not {len(old)}"
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    if not pairs:
        return ""
    if len(old) == 1:
        return f"{key} {old[0]} -> {new[0]}{_by(pairs)}"
    return f"{key} in {len(pairs)} of {len(old)} rows{_by(pairs)}"


def _by(pairs: list[tuple[str, str]]) -> str:
    """Return the largest difference, if all are numbers."""
    try:
        return f" (by {max(abs(float(b) - float(a)) for a, b in pairs):.3g})"
    except ValueError:
        return ""


@dataclass(frozen=True)
class Verdict:
    """How a run differs, and whether this checkout could not carry it out, which nothing excuses."""

    run: Run
    found: list[str]
    broken: bool = False

    @property
    def excuse(self) -> str:
        """Return why the run may differ."""
        return "" if self.broken else EXPECTED.get(self.run.name, "")

    @property
    def unexpected(self) -> bool:
        """Whether the run differs and should not."""
        return bool(self.found) and not self.excuse

    def __str__(self) -> str:
        word = "DIFFERENT" if self.unexpected else "expected" if self.found else "same"
        stale = f"EXPECTED names it without need ({self.excuse})"
        why = [self.excuse if self.found else stale] if self.excuse else []
        name = f"{self.run.name} {self.run.options}".strip()
        return f"{word:<9}  {name}  {'; '.join(why + self.found)}".rstrip()


def judge(run: Run, reference: Checkout, present: Checkout) -> Verdict:
    """Carry a run out with both checkouts; where one fails, that is the difference."""
    try:
        new = present.answer(run)
    except RuntimeError as failure:
        return Verdict(run, [str(failure)], broken=True)
    try:
        return Verdict(run, differences(reference.answer(run), new))
    except RuntimeError as failure:
        return Verdict(run, [str(failure)])


def compare(runs: list[Run], reference: Checkout, present: Checkout, processes: int) -> int:
    """Compare all runs, print a line for each, and return the exit code."""
    write_inputs(reference)
    verdicts: list[Verdict] = []
    with ThreadPoolExecutor(processes) as pool:
        for verdict in pool.map(lambda run: judge(run, reference, present), runs):
            print(verdict, flush=True)
            verdicts.append(verdict)
    same = sum(not verdict.found for verdict in verdicts)
    unexpected = sum(verdict.unexpected for verdict in verdicts)
    others = f"{len(runs) - same - unexpected} differ as expected, {unexpected} differ"
    print(f"{same} of {len(runs)} runs are the same, {others}")
    return 1 if unexpected else 0


def uncovered(reference: Checkout) -> list[str]:
    """Return the stages and presets that no run names."""
    known: list[dict[str, Any]] = json.loads(reference.ask(["policies", "--json"]))
    named = {term.partition("(")[0] for _, policy, _ in RUNS for term in policy.split("+")}
    return [entry["name"] for entry in known if entry["name"] not in named]


# -- inputs -------------------------------------------------------------------------------------------------


def export(revision: str, directory: Path) -> None:
    """Write the sources of a commit; nothing in the repository changes."""
    command = ["git", "-C", str(ROOT), "archive", revision, "src"]
    made = subprocess.run(command, capture_output=True)
    if made.returncode:
        print(f"--against {revision}: git has no such commit here; fetch it or name one", file=sys.stderr)
        raise SystemExit(2)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive:
        archive.extractall(directory, filter="data")


def write_inputs(reference: Checkout) -> None:
    """Write the files that both checkouts read."""
    for name, arguments in GENERATED.items():
        reference.ask(["trace", "generate", *arguments.split(), name])
    write_clusters(reference.directory)
    write_failures(reference.directory)
    write_jobs(reference.directory)


# -- timing -------------------------------------------------------------------------------------------------


def measure(policies: list[str], reference: Checkout, present: Checkout) -> int:
    """Print the user CPU of both checkouts, in turns, and the median of the ratios."""
    reference.ask(["trace", "generate", *TIMED_JOBS.split(), "timed.csv"])
    (reference.directory / "timed.yaml").write_text(json.dumps(TIMED_NODES))
    for policy in policies:
        pairs = [pair_s(policy, reference, present, turn % 2 == 1) for turn in range(PAIRS)]
        ratio = statistics.median(new / old for old, new in pairs)
        old_s, new_s = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(f"{policy:<6}{old_s:>8.2f} s -> {new_s:.2f} s user CPU, median ratio {ratio:.3f}", flush=True)
    return 0


def pair_s(policy: str, reference: Checkout, present: Checkout, swapped: bool) -> tuple[float, float]:
    """Return the user CPU of both; which runs first alternates, as the machine may warm up or slow down."""
    if swapped:
        new = user_s(present, policy)
        return user_s(reference, policy), new
    return user_s(reference, policy), user_s(present, policy)


def user_s(checkout: Checkout, policy: str) -> float:
    """Return the user CPU of one run as the kernel counts it."""
    files = ["--cluster", "timed.yaml", "--jobs", "timed.csv"]
    before = os.times().children_user
    checkout.ask(["simulate", *files, "--policy", policy, "--json"])
    return os.times().children_user - before


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare the answers of this checkout with another commit.")
    parser.add_argument("--against", default=AGAINST, metavar="REV", help=f"the commit (default {AGAINST})")
    parser.add_argument("--only", default="*", metavar="GLOB", help="runs by name, such as 'typed/market*'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes at a time")
    parser.add_argument("--time", action="store_true", help=f"ratio of user CPU for {', '.join(TIMED)}")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error(f"--jobs {args.jobs}: give 1 or more")
    return args


def main() -> int:
    """Compare or measure."""
    args = parse_arguments()
    runs = [run for run in (Run(*row) for row in RUNS) if fnmatchcase(run.name, args.only)]
    policies = [policy for policy in TIMED if fnmatchcase(policy, args.only)]
    if not (policies if args.time else runs):
        print(f"--only {args.only}: no run has such a name", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        export(args.against, directory)
        reference = Checkout(args.against, directory / "src", directory)
        present = Checkout("this checkout", ROOT / "src", directory)
        if args.time:
            return measure(policies, reference, present)
        if missing := uncovered(reference):
            print(f"no run names {', '.join(missing)}; add one to RUNS", file=sys.stderr)
            return 2
        began = time.perf_counter()
        code = compare(runs, reference, present, args.jobs)
        print(f"{os.times().children_user:.0f} s user CPU, {time.perf_counter() - began:.0f} s in all")
        return code


if __name__ == "__main__":
    sys.exit(main())
