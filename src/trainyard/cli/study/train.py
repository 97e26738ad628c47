"""`trainyard train`: make weights for a learned policy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.usage import not_negative, positive, wants_suffix, whole
from trainyard.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from trainyard.learn.journal import Show
    from trainyard.learn.networks import NetworkKind
    from trainyard.learn.workload import Split
    from trainyard.policy.policy import Policy

POLICIES = ("dl2",)
NETWORKS = ("set", "window")
NO_TEACHER = "none"
LOGS = (".jsonl", ".jsonl.gz")
DEFAULT_SLOT_S, DEFAULT_EPISODE_JOBS, DEFAULT_DECISIONS = 600.0, 60, 300_000

Setting = Annotated[
    str | None,
    typer.Option(
        help="Generated episodes instead of --cluster and --jobs: a setting, or a+b.", metavar="NAME"
    ),
]
MaybeCluster = Annotated[str | None, typer.Option("--cluster", help="Cluster file (YAML).", metavar="FILE")]
MaybeJobs = Annotated[
    str | None, typer.Option("--jobs", help="Jobs file to cut episodes from.", metavar="FILE")
]
SlotS = Annotated[float | None, o.amount("With --jobs: seconds of a slot (default: 600).")]
EpisodeJobs = Annotated[
    int | None,
    typer.Option(parser=whole, help="With --jobs: jobs of an episode (default: 60).", metavar="N"),
]


def train(
    policy: Annotated[str, typer.Argument(help="What to train: dl2.", metavar="POLICY")],
    out: Annotated[str, typer.Option(help="Weights file to write (.safetensors).", metavar="FILE")],
    teacher: Annotated[
        str, typer.Option(help="Policy to imitate first, a decision log (.jsonl), or none.", metavar="P")
    ] = "steepest",
    setting: Setting = None,
    cluster: MaybeCluster = None,
    jobs: MaybeJobs = None,
    profiles: o.Profiles = None,
    slot_s: SlotS = None,
    episode_jobs: EpisodeJobs = None,
    warm_up_on: Annotated[
        str | None, typer.Option(help="Setting for the first third (curriculum).", metavar="NAME")
    ] = None,
    network: Annotated[str, typer.Option(help="set (ours) or window (the paper's).", metavar="KIND")] = "set",
    decisions: Annotated[
        int | None, typer.Option(parser=whole, help="Decisions to imitate (default: 300,000).", metavar="N")
    ] = None,
    iterations: Annotated[
        int, typer.Option(parser=whole, help="Iterations of reinforcement learning.", metavar="N")
    ] = 30,
    seed: o.Seed = 0,
    log: Annotated[
        str | None,
        typer.Option(
            help="Directory for curves and checkpoints; a training goes on from there.", metavar="DIR"
        ),
    ] = None,
) -> None:
    """Train a policy: imitate a teacher, then improve by reinforcement learning in simulation."""
    _check(policy, network, decisions, iterations, seed)
    if decisions is not None and teacher == NO_TEACHER:
        raise InputError("--decisions are those of a teacher to imitate; leave it out without a teacher")
    decisions = DEFAULT_DECISIONS if decisions is None else decisions
    from trainyard.files.output import out_dir, prepare_out_file
    from trainyard.policy.size.dl2.weights import SUFFIX, save_weights

    wants_suffix("--out", out, (SUFFIX,), SUFFIX)
    prepare_out_file(out)
    split = episodes(setting, cluster, jobs, profiles, slot_s, episode_jobs)
    phases: tuple[tuple[float, Split], ...] = ((1.0, split),)
    if warm_up_on is not None:
        phases = ((1 / 3, episodes(warm_up_on, None, None, None, None, None)), *phases)
    imitated = _teacher(teacher)
    kind: NetworkKind = "set" if network == "set" else "window"
    require_torch()  # only now: with PyTorch, too, a wrong argument would have to be mended first
    from trainyard.learn.journal import Journal
    from trainyard.learn.training import plan_of, train

    plan = plan_of(imitated, phases, kind, decisions, iterations, seed)
    made = {"command": " ".join(["trainyard", *sys.argv[1:]]), "seed": str(seed)}
    with (
        out_dir(log) if log is not None else nullcontext() as directory,
        _shown(decisions, iterations) as show,
    ):
        journal = Journal(directory, show)
        weights = train(plan, journal, made, directory)
        journal.close()
    save_weights(out, weights)
    for name, text in weights.made.items():
        typer.echo(f"{name}: {text}")
    typer.echo(f"Weights: {out}; use them as 'dl2(weights={out})'")


def _check(policy: str, network: str, decisions: int | None, iterations: int, seed: int) -> None:
    if policy not in POLICIES:
        raise InputError(f"'{policy}' cannot be trained{did_you_mean(policy, POLICIES)}")
    if network not in NETWORKS:
        raise InputError(f"--network '{network}' is not one of {', '.join(NETWORKS)}")
    positive("--decisions", decisions)
    not_negative("--iterations", iterations)
    not_negative("--seed", seed)


def require_torch() -> None:
    """Raise InputError if nothing can be trained."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError("training needs PyTorch; pip install 'trainyard[learn]'")


def episodes(
    setting: str | None,
    cluster: str | None,
    jobs: str | None,
    profiles: str | None,
    slot_s: float | None,
    episode_jobs: int | None,
) -> Split:
    """Return the episodes that options ask for."""
    if (setting is None) == (cluster is None and jobs is None):
        raise InputError("give either --setting, or --cluster and --jobs")
    if setting is not None:
        for option, value in (
            ("--profiles", profiles),
            ("--slot-s", slot_s),
            ("--episode-jobs", episode_jobs),
        ):
            if value is not None:
                raise InputError(f"{option} goes with --jobs; leave it out, a setting has its own")
        from trainyard.learn.settings.splits import dl2_split

        return dl2_split(setting)
    if cluster is None or jobs is None:
        raise InputError("--cluster and --jobs belong together; give both")
    from trainyard.learn.workload import FEWEST, excerpts

    positive("--slot-s", slot_s)
    if episode_jobs is not None and episode_jobs < FEWEST:
        raise InputError(f"--episode-jobs {episode_jobs}: give {FEWEST} or more")
    size = DEFAULT_EPISODE_JOBS if episode_jobs is None else episode_jobs
    return excerpts(
        *o.read_inputs(cluster, jobs, profiles), DEFAULT_SLOT_S if slot_s is None else slot_s, size
    )


def _teacher(text: str) -> Policy | str | None:
    from trainyard.policy.grammar import parse_policy

    if text == NO_TEACHER:
        return None
    return text if text.endswith(LOGS) else parse_policy(text)


@contextmanager
def _shown(decisions: int, iterations: int) -> Iterator[Show | None]:
    """Progress on stderr; nothing when that is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = {
            "warm-up": bars.add_task("warm-up", total=decisions, said=""),
            "rl": bars.add_task("learning", total=iterations, said=""),
        }

        def show(part: str, step: int, numbers: Mapping[str, float]) -> None:
            if part in tasks:
                bars.update(tasks[part], completed=step)
            if part == "validation":
                bars.update(tasks["rl"], said=f"JCT {numbers['jct']:.3f} slots, best {numbers['best']:.3f}")

        yield show
