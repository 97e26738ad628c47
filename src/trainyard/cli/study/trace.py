"""`trainyard trace`: convert published traces, generate new ones, and say what is in one."""

from __future__ import annotations

import sys
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli.usage import in_bounds, not_negative, number, positive, wants_suffix, whole
from trainyard.errors import InputError, did_you_mean
from trainyard.model.limits import LARGEST, MAX_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.table import Table

    from trainyard.model.job import Job
    from trainyard.trace.stats import Arrivals, TraceStats

app = typer.Typer(help="Convert, generate and measure traces.")

MOST_JOBS = 10_000_000
MOST_RATE_PER_H = 1e9
RIGHT_SUFFIX = ".csv or .jsonl, or in one of them with .gz"


@app.command()
def convert(
    src: Annotated[str, typer.Argument(help="Trace to read (.gz too).", metavar="SRC")],
    dst: Annotated[str, typer.Argument(help="Jobs file to write (.csv or .jsonl, .gz too).", metavar="DST")],
    format: Annotated[
        str | None, typer.Option(help="Its form, if it is not to be told from the header.", metavar="NAME")
    ] = None,
) -> None:
    """Make a jobs file of a published trace."""
    from trainyard.files.jobs import SUFFIXES, write_jobs
    from trainyard.trace.detect import read_trace

    wants_suffix("DST", dst, SUFFIXES, RIGHT_SUFFIX)
    trace = read_trace(src, format)
    write_jobs(dst, trace.jobs)
    _note([f"{trace.format}: {len(trace.jobs):,} jobs written to {dst}", *trace.report.lines()])


@app.command()
def generate(
    dst: Annotated[str, typer.Argument(help="Jobs file to write (.csv or .jsonl, .gz too).", metavar="DST")],
    preset: Annotated[str, typer.Option(help="The cluster to imitate, or 'poisson'.", metavar="NAME")],
    jobs: Annotated[int, typer.Option(parser=whole, help="Number of jobs.", metavar="N")],
    seed: Annotated[int, typer.Option(parser=whole, help="Seed of all randomness.", metavar="S")] = 0,
    rate_per_h: Annotated[
        float | None, typer.Option(parser=number, help="poisson: jobs per hour.", metavar="N")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(help="poisson: shares, as in 1:0.7,8:0.3.", metavar="MIX")
    ] = None,
    duration_s: Annotated[
        float | None, typer.Option(parser=number, help="poisson: mean run time.", metavar="N")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(help="Models of the zoo by share, as in resnet50:2,lstm:1.", metavar="MIX"),
    ] = None,
) -> None:
    """Make a trace like that of a published cluster, or a plain one."""
    from trainyard.files.jobs import SUFFIXES, write_jobs
    from trainyard.trace.generate import generate as imitate
    from trainyard.trace.generate import with_models
    from trainyard.trace.presets import PLAIN

    wants_suffix("DST", dst, SUFFIXES, RIGHT_SUFFIX)
    if not 1 <= jobs <= MOST_JOBS:
        raise InputError(f"--jobs {jobs}: give a whole number from 1 to {MOST_JOBS}")
    not_negative("--seed", seed)
    positive("--rate-per-h", rate_per_h)
    positive("--duration-s", duration_s)
    in_bounds("--rate-per-h", rate_per_h, 1 / MOST_RATE_PER_H, MOST_RATE_PER_H)
    in_bounds("--duration-s", duration_s, 1 / LARGEST, MAX_S / 100)
    made = _plain(jobs, seed, rate_per_h, gpus, duration_s) if preset == PLAIN else None
    if made is None:
        _only_for_poisson({"--rate-per-h": rate_per_h, "--gpus": gpus, "--duration-s": duration_s})
        made = imitate(preset, jobs, seed)
    if models is not None:
        made = with_models(made, _zoo_shares(models), seed)
    write_jobs(dst, made)
    _note([f"{preset}: {len(made):,} jobs written to {dst}", *_about(preset)])


@app.command()
def stats(
    file: Annotated[str, typer.Argument(help="Jobs file or published trace (.gz too).", metavar="FILE")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
    plot: Annotated[str | None, typer.Option(help="Also draw it.", metavar="PNG")] = None,
    format: Annotated[
        str | None, typer.Option(help="Its form, if it is not to be told from the header.", metavar="NAME")
    ] = None,
) -> None:
    """Say what is in a trace."""
    from trainyard.trace.detect import read_trace
    from trainyard.trace.stats import trace_stats

    if plot is not None:
        wants_suffix("--plot", plot, (".png",), ".png")
    trace = read_trace(file, format)
    found = trace_stats(trace.jobs, trace.origin_s)
    _note(trace.report.lines())
    if plot is not None:
        from trainyard.trace.plots import plot_stats

        plot_stats(trace.jobs, plot, trace.origin_s)
        _note([f"plots written to {plot}"])
    if json:
        from trainyard.cli.shown.as_json import print_json

        print_json({"format": trace.format, **found.as_dict()})
    else:
        _show(f"{file} ({trace.format})", found)


def _plain(
    jobs: int, seed: int, rate_per_h: float | None, gpus: str | None, duration_s: float | None
) -> list[Job]:
    from trainyard.trace.generate import DEFAULT_MIX, parse_gpu_mix, poisson

    mix = DEFAULT_MIX if gpus is None else parse_gpu_mix(gpus, "--gpus")
    rate = 10.0 if rate_per_h is None else rate_per_h
    return poisson(jobs, seed, rate, mix, 3600.0 if duration_s is None else duration_s)


def _zoo_shares(text: str) -> dict[str, float]:
    from trainyard.model.zoo import ZOO
    from trainyard.trace.generate import parse_shares

    shares = parse_shares(text, "--models", "resnet50:2,lstm:1")
    for name in shares:
        if name not in ZOO:
            raise InputError(f"--models: no model '{name}' in the zoo{did_you_mean(name, ZOO)}")
    return shares


def _only_for_poisson(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option} is for --preset poisson; leave it out, a cluster's preset has its own"
            )


def _about(preset: str) -> list[str]:
    from trainyard.trace.presets import PLAIN
    from trainyard.trace.presets import preset as look_up

    if preset == PLAIN:
        return []
    facts = look_up(preset)
    shapes = " + ".join(f"{nodes} x {gpus}" for nodes, gpus in facts.cluster.shapes)
    return [facts.source, f"the real cluster: {facts.cluster.gpus:,} GPUs ({shapes})"]


def _note(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _show(title: str, found: TraceStats) -> None:
    from rich.console import Console

    console = Console()
    console.print(_summary(title, found))
    console.print(_sizes(found))
    for name, shares in (("tenant", found.tenants), ("status", found.statuses)):
        if shares:
            console.print(_shares(name, shares))


def _summary(title: str, found: TraceStats) -> Table:
    from rich.table import Table

    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(justify="left")
    table.add_column(justify="right")
    for name, value in _lines(found):
        table.add_row(name, value)
    return table


def _lines(found: TraceStats) -> list[tuple[str, str]]:
    lines = [
        ("jobs", f"{found.jobs:,}"),
        ("days", f"{found.span_s / 86400:,.2f}"),
        ("GPUs asked for, mean / largest", f"{found.mean_gpus:.3f} / {found.max_gpus}"),
        ("run time, mean (s)", f"{found.mean_s:,.0f}"),
    ]
    lines += [(f"run time, {p} % (s)", f"{value:,.0f}") for p, value in found.percentiles_s.items()]
    if found.load_gpus is not None:
        lines.append(("offered load (GPUs)", f"{found.load_gpus:,.1f}"))
    if found.arrivals:
        lines += _arrival_lines(found.arrivals)
    lines.append(("GPUs for a load of 0.9", f"{found.suggested_gpus:,}"))
    if found.estimated:
        lines.append(("run times estimated from samples", f"{found.estimated:,} (on V100s)"))
    return lines


def _arrival_lines(found: Arrivals) -> list[tuple[str, str]]:
    numbers = {
        "jobs per hour": found.rate_per_h,
        "offered load (GPUs)": found.load_gpus,
        "variation of gaps (Poisson: 1)": found.gap_cv,
        **{f"dispersion in {name} (Poisson: 1)": value for name, value in found.dispersion.items()},
        "busiest / quietest hour of the day": found.peak_to_trough,
        "weekend / weekday": found.weekend_to_weekday,
    }
    known = [(f"  {name}", f"{value:,.2f}") for name, value in numbers.items() if value and isfinite(value)]
    return [("busy days", f"{found.days:,.1f} from day {found.from_day}"), *known]


def _sizes(found: TraceStats) -> Table:
    from rich.table import Table

    table = Table("GPUs", "of jobs", "of GPU-time", "median run time (s)")
    for one in found.classes:
        table.add_row(one.label, f"{one.job_share:.1%}", f"{one.gpu_time_share:.1%}", f"{one.median_s:,.0f}")
    return table


def _shares(name: str, shares: dict[str, float]) -> Table:
    from rich.table import Table

    table = Table(name, "of jobs")
    for label, share in shares.items():
        table.add_row(label, f"{share:.1%}")
    return table
