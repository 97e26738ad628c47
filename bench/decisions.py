"""How long one decision takes: `make bench` (docs/performance.md).

Every case is one decision from an empty cluster with everybody waiting, the most there can be to decide. User
CPU of the decision alone, the best of some repetitions, in a process of its own for each policy.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from trainyard.core.events import JobSubmitted
from trainyard.core.yard import Yard
from trainyard.model.cluster import CPUS_PER_GPU, MEMORY_GB_PER_GPU, Cluster, GpuType, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Profile, Sync
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.types.market.prices import trade
from trainyard.reproduce.market.gaps import complete, plain_program
from trainyard.reproduce.market.instances import instance
from trainyard.reproduce.synergy.workload import CLASSES

GPUS_PER_NODE = 8
SEED = 1
PROGRAMS = ((4, 15, 12), (8, 16, 9), (10, 20, 11), (12, 24, 13))  # jobs, workers, the most of a job
GROWTH_GPUS = (128, 256, 512, 1024, 2048, 4096, 8192)

RING_MODELS = ("resnet50", "vgg16", "inception-v3", "bert-large", "gpt2", "transformer", "deepspeech2")
MOST_GPUS = (8, 16, 32)  # of an elastic job
# GPU types of mixed clusters by speed; the zoo has times for the first five.
TYPES = {"V100": 1.0, "P100": 0.6, "K80": 0.14, "T4": 0.35, "A100": 2.5, "L4": 0.8, "A10": 1.2, "H100": 5.0}


@dataclass(frozen=True)
class Case:
    """One decision: who decides about how many jobs on how many GPUs, and how long it may take."""

    policy: str
    gpus: int
    jobs: int
    limit_ms: float
    reference: str
    reference_ms: float | None  # None: the reference is a policy, to be measured on the same jobs
    repeat: int = 5
    workload: str = "synergy"


# The reference numbers are those of Synergy's public artifact at the same size: quoted, not measured here.
CASES = (
    Case("srtf+tune", 2048, 3000, 50.0, "Synergy artifact, TUNE", 1000.0),
    Case("srtf+opt", 2048, 2048, 5000.0, "Synergy artifact, OPT with HiGHS", 45_000.0, repeat=3),
    Case("doubling", 8192, 2000, 50.0, "fifo", None, workload="ring"),
    Case("optimus", 8192, 2000, 200.0, "fifo", None, workload="ring"),
    Case("optimus", 8192, 2000, 200.0, "fifo", None, workload="servers"),
    Case("lookahead", 8192, 2000, 200.0, "fifo", None, workload="ring"),
    Case("lookahead", 8192, 2000, 500.0, "fifo", None, workload="servers"),
    Case("steepest", 8192, 2000, 500.0, "fifo", None, workload="ring"),
    Case("steepest", 8192, 2000, 1000.0, "fifo", None, workload="servers"),
    Case("smd(eps=0.1,solver=lp)", 8192, 2000, 1000.0, "fifo", None, workload="servers"),
    *(
        Case("market", gpus, jobs, limit_ms, "fifo", None, repeat=3, workload=f"mixed{types}")
        for gpus, jobs, limit_ms in ((512, 200, 500.0), (2048, 1000, 5000.0), (10_000, 2000, 30_000.0))
        for types in (3, 8)
    ),
)


def jobs_of(workload: str, count: int) -> list[Job]:
    """Draw the jobs: single-GPU ones of Synergy's models, elastic ring jobs, or jobs with servers.

    Jobs with parameter servers all have profiles of their own: nothing can be worked out for two at once.
    """
    draw = random.Random(SEED)
    jobs = []
    for i in range(count):
        if workload == "synergy":
            profile = zoo_profile(draw.choice(draw.choice(CLASSES)))  # in equal parts they want too many CPUs
            gpus, most = 1, None
        else:
            ring = workload != "servers"
            profile = zoo_profile(draw.choice(RING_MODELS)) if ring else served(draw)
            gpus, most = 4, draw.choice(MOST_GPUS)
        duration_s = draw.uniform(1800.0, 360_000.0)
        least = None if most is None else 1
        jobs.append(Job(f"job-{i}", 0.0, gpus, duration_s, profile=profile, min_gpus=least, max_gpus=most))
    return jobs


def cluster_of(workload: str, gpus: int) -> Cluster:
    """Return equal nodes, or nodes of several GPU types in equal parts."""
    nodes = gpus // GPUS_PER_NODE
    if not workload.startswith("mixed"):
        return uniform_cluster(nodes, GPUS_PER_NODE)
    types = list(TYPES)[: int(workload.removeprefix("mixed"))]
    cpus, memory_gb = CPUS_PER_GPU * GPUS_PER_NODE, MEMORY_GB_PER_GPU * GPUS_PER_NODE
    names = [types[i % len(types)] for i in range(nodes)]
    made = tuple(Node(f"{t}-{i}", t, GPUS_PER_NODE, cpus, memory_gb) for i, t in enumerate(names))
    return Cluster("mixed", made, {t: GpuType(t, TYPES[t]) for t in types})


def served(draw: random.Random) -> Profile:
    """Draw a job with parameter servers."""
    return Profile(
        batch=256,
        compute=Compute(0.02, {"GPU": draw.uniform(0.001, 0.01)}),
        sync=Sync(
            "ps", gradient_mb=draw.uniform(30.0, 500.0), worker_overhead_s=1e-3, server_overhead_s=5e-4
        ),
        worker=Demand(2.0, 16.0),
        server=Demand(1.0, 8.0),
    )


def decide(policy_name: str, gpus: int, jobs: int, repeat: int, workload: str) -> float:
    """Return the milliseconds of user CPU that one decision takes at best."""
    policy = parse_policy(policy_name)
    yard = Yard(cluster_of(workload, gpus), policy.decide)
    for job in jobs_of(workload, jobs):
        yard.handle(JobSubmitted(0.0, job))
    # The first one imports the solver and works out ladders and curves; what it says is known to the next.
    view = yard.snapshot(1.0)
    view.said = policy.decide(view).notes
    gc.collect()
    gc.disable()  # as the simulator does
    taken = []
    for _ in range(repeat):
        began = time.process_time()
        policy.decide(yard.snapshot(1.0))
        taken.append(time.process_time() - began)
    return min(taken) * 1e3


def measure(policy: str, gpus: int, jobs: int, repeat: int, workload: str = "synergy") -> float:
    """Decide in a fresh process."""
    task = json.dumps([policy, gpus, jobs, repeat, workload])
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    answer = subprocess.run(
        [sys.executable, __file__, "--task", task],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if answer.returncode:
        raise SystemExit(f"{policy} on {gpus} GPUs failed:\n{answer.stderr}")
    return float(answer.stdout)


def run_cases() -> list[tuple[Case, float]]:
    """Measure and print the cases with a limit."""
    print("One decision from an empty cluster, user CPU")
    numbers = f"{'GPUs':>7}{'jobs':>7}{'ms':>9}{'limit ms':>10}"
    print(f"{'policy':<24}{'jobs':<9}{numbers}  {'ok?':<5}{'x reference':>12}  reference")
    found = []
    for case in CASES:
        size = case.gpus, case.jobs, case.repeat, case.workload
        taken = measure(case.policy, *size)
        reference_ms = case.reference_ms or measure(case.reference, *size)
        kept = "yes" if taken <= case.limit_ms else "NO"
        print(
            f"{case.policy:<24}{case.workload:<9}{case.gpus:>7,}{case.jobs:>7,}{taken:>9.1f}"
            f"{case.limit_ms:>10,.0f}  {kept:<5}"
            f"{reference_ms / taken:>11,.2f}x  {case.reference} ({reference_ms:,.0f} ms)",
            flush=True,
        )
        found.append((case, taken))
    return found


def run_programs() -> None:
    """Print the market's time beside that of one integer program over everything, where that finishes."""
    print(
        "\nThe market's prices against a plain integer program by HiGHS, ms of user CPU, mean of 3 instances"
    )
    print(f"{'jobs x workers':<16}{'prices':>9}{'program':>11}{'program / prices':>18}{'worst gap %':>13}")
    for jobs, workers, most in PROGRAMS:
        ours, theirs, gaps = [], [], []
        for seed in range(3):
            drawn = instance(jobs, workers, seed, most)
            began = time.process_time()
            mix = trade(drawn.costs, complete(drawn)).mix
            between = time.process_time()
            best = plain_program(drawn)
            ours.append(between - began)
            theirs.append(time.process_time() - between)
            gaps.append(100 * (drawn.costs.total(mix) / drawn.costs.total(best) - 1))
        ratio = sum(theirs) / sum(ours)
        mean = [1e3 * sum(each) / 3 for each in (ours, theirs)]
        print(
            f"{jobs:>4} x {workers:<9}{mean[0]:>9.1f}{mean[1]:>11,.1f}{ratio:>17,.0f}x{max(gaps):>13.3f}",
            flush=True,
        )


def run_growth() -> dict[str, list[float]]:
    """Measure and print how the time grows with the cluster, three jobs for two GPUs."""
    print("\nGrowth: three waiting jobs for every two GPUs, ms (and microseconds per GPU)")
    print(f"{'policy':<12}" + "".join(f"{gpus:>16,}" for gpus in GROWTH_GPUS))
    growth: dict[str, list[float]] = {}
    for policy in ("srtf", *(case.policy for case in CASES if case.workload == "synergy")):
        growth[policy] = [measure(policy, gpus, gpus * 3 // 2, 3) for gpus in GROWTH_GPUS]
        cells = (
            f"{ms:>9.1f} ({1e3 * ms / n:>4.0f})" for ms, n in zip(growth[policy], GROWTH_GPUS, strict=True)
        )
        print(f"{policy:<12}" + "".join(cells), flush=True)
    return growth


def plot(growth: dict[str, list[float]], path: Path) -> None:
    """Draw decision time against cluster size, with straight lines to compare with."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for policy, taken in growth.items():
        (line,) = axes.loglog(GROWTH_GPUS, taken, marker="o", label=policy)
        linear = [taken[0] * gpus / GROWTH_GPUS[0] for gpus in GROWTH_GPUS]
        axes.loglog(GROWTH_GPUS, linear, linestyle=":", linewidth=1, color=line.get_color())
    axes.set_xticks(GROWTH_GPUS, [f"{gpus:,}" for gpus in GROWTH_GPUS])
    axes.minorticks_off()
    axes.set_xlabel("GPUs; 1.5 waiting single-GPU jobs for each")
    axes.set_ylabel("one decision, ms of user CPU")
    axes.set_title("Decision time; dotted: linear growth from the smallest", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"Drawn to {path}")


def main() -> int:
    """Measure, print, and say by the exit code whether all limits are kept."""
    parser = argparse.ArgumentParser(description="Time single decisions.")
    parser.add_argument(
        "--growth", action="store_true", help="also measure how the time grows with the cluster"
    )
    parser.add_argument("--plot", type=Path, help="draw the growth as a PNG")
    parser.add_argument("--out", type=Path, help="also write the numbers as JSON")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        print(decide(*json.loads(args.task)))
        return 0
    found = run_cases()
    run_programs()
    growth = run_growth() if args.growth or args.plot else {}
    if args.plot:
        plot(growth, args.plot)
    if args.out:
        cases = [{**asdict(case), "ms": taken} for case, taken in found]
        args.out.write_text(
            json.dumps({"cases": cases, "gpus": GROWTH_GPUS, "growth": growth}, indent=2) + "\n"
        )
    return 0 if all(taken <= case.limit_ms for case, taken in found) else 1


if __name__ == "__main__":
    sys.exit(main())
