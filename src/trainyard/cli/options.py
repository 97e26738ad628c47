"""Options that `simulate` and `compare` share, and what they mean together."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from trainyard.cli.sharing import shares
from trainyard.cli.usage import in_bounds, not_negative, note, number, positive, whole
from trainyard.errors import InputError
from trainyard.model.limits import LONGEST_H, MAX_S, SHORTEST_MTBF_H, SHORTEST_ROUND_S, SMALLEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainyard.model.cluster import Cluster
    from trainyard.model.job import Job
    from trainyard.model.rules import Rules
    from trainyard.sim.failures import Failure


def amount(what: str) -> Any:
    """An option that takes a number."""
    return typer.Option(parser=number, help=what, metavar="N")


ClusterFile = Annotated[str, typer.Option("--cluster", help="Cluster file (YAML).", metavar="FILE")]
JobsFile = Annotated[
    str, typer.Option("--jobs", help="Jobs file (CSV or JSON lines, .gz too).", metavar="FILE")
]
RoundS = Annotated[float | None, amount("Decide only at multiples of N seconds.")]
RestartS = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="N",
        help="Seconds lost when a job resumes or its workers change (default: the profile's, else 0).",
    ),
]
StartS = Annotated[float, amount("Seconds lost at a job's first start.")]
Profiles = Annotated[str | None, typer.Option(help="Profiles by model name (YAML or JSON).", metavar="FILE")]
Seed = Annotated[int, typer.Option(parser=whole, help="Seed of all randomness.", metavar="N")]
UntilS = Annotated[float | None, amount("Stop the clock at N seconds.")]
UnknownDurations = Annotated[
    bool, typer.Option("--unknown-durations", help="Hide the jobs' work from the policy, which has to guess.")
]
Failures = Annotated[
    str | None, typer.Option(help="Node failures (CSV: time_s,node,repair_s).", metavar="FILE")
]
MtbfH = Annotated[float | None, amount("Random node failures: mean hours between two of one node.")]
RepairH = Annotated[float | None, amount("With --mtbf-h: mean hours until a node is back (default: 1).")]
Out = Annotated[str | None, typer.Option(help="Write the results into this directory.", metavar="DIR")]
ProfilesOut = Annotated[
    str | None,
    typer.Option(help="Profiles file to write it to (YAML, or .json); others in it stay.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def read_inputs(cluster_file: str, jobs_file: str, profiles: str | None) -> tuple[Cluster, list[Job]]:
    """Read and check the cluster and the jobs."""
    from trainyard.api import known_models, load_cluster
    from trainyard.files.jobs import load_jobs
    from trainyard.files.reading import name_of
    from trainyard.files.unmatched import tell_unmatched

    cluster, models, zoo = load_cluster(cluster_file), known_models(profiles), known_models()
    jobs = load_jobs(jobs_file, models, cluster, note)
    tell_unmatched(note, cluster, jobs, name_of(cluster_file), name_of(jobs_file))
    if profiles is not None and not any(models.get(job.model) is not zoo.get(job.model) for job in jobs):
        note(f"--profiles {name_of(profiles)}: it is not used, no job names a model of it")
    return cluster, jobs


def _rules(
    round_s: float | None,
    restart_s: float | None,
    start_s: float,
    seed: int,
    until_s: float | None,
    unknown: bool,
) -> Rules:
    """Check the numbers of a run."""
    from trainyard.model.rules import Rules

    positive("--round-s", round_s)
    if round_s is not None and round_s < SHORTEST_ROUND_S:
        raise InputError(f"--round-s {round_s:g}: give {SHORTEST_ROUND_S:g} or more, or leave it out")
    positive("--until-s", until_s)
    not_negative("--restart-s", restart_s)
    not_negative("--start-s", start_s)
    not_negative("--seed", seed)
    in_bounds("--round-s", round_s, SHORTEST_ROUND_S, MAX_S)
    in_bounds("--until-s", until_s, SMALLEST, MAX_S)
    in_bounds("--restart-s", restart_s, 0, MAX_S)
    in_bounds("--start-s", start_s, 0, MAX_S)
    return Rules(round_s, restart_s, start_s, seed, math.inf if until_s is None else until_s, unknown)


def _failures(
    cluster: Cluster, file: str | None, mtbf_h: float | None, repair_h: float | None, seed: int
) -> Iterable[Failure]:
    """Return node failures from a file or a rate; none by default."""
    from trainyard.files.failures import load_failures
    from trainyard.sim.failures import Failure, RandomFailures

    if file is not None and mtbf_h is not None:
        raise InputError("--failures and --mtbf-h exclude each other; give one of them")
    positive("--mtbf-h", mtbf_h)
    positive("--repair-h", repair_h)
    in_bounds("--mtbf-h", mtbf_h, SHORTEST_MTBF_H, LONGEST_H)
    in_bounds("--repair-h", repair_h, SMALLEST, LONGEST_H)
    if file is not None:
        return [Failure(*row) for row in load_failures(Path(file), cluster)]
    if mtbf_h is None:
        return ()
    return RandomFailures(cluster, mtbf_h, 1.0 if repair_h is None else repair_h, seed)


class Run(NamedTuple):
    """What is simulated: the inputs of `simulate` and `compare`."""

    cluster: Cluster
    jobs: list[Job]
    rules: Rules
    failures: Iterable[Failure]


def read_run(
    cluster: ClusterFile,
    jobs: JobsFile,
    round_s: RoundS = None,
    restart_s: RestartS = None,
    start_s: StartS = 0.0,
    profiles: Profiles = None,
    seed: Seed = 0,
    until_s: UntilS = None,
    failures: Failures = None,
    mtbf_h: MtbfH = None,
    repair_h: RepairH = None,
    unknown_durations: UnknownDurations = False,
) -> Run:
    """Read and check everything that a run needs."""
    rules = _rules(round_s, restart_s, start_s, seed, until_s, unknown_durations)
    if repair_h is not None and mtbf_h is None:
        raise InputError("--repair-h goes with --mtbf-h; give that too, or leave it out")
    nodes, work = read_inputs(cluster, jobs, profiles)
    return Run(nodes, work, rules, _failures(nodes, failures, mtbf_h, repair_h, seed))


with_run = shares("run", read_run)  # the command gets a function that reads them
