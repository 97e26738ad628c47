"""`trainyard reproduce`: the experiments of a paper, their numbers beside ours."""

from __future__ import annotations

from typing import Annotated

import typer

PAPERS = {
    "synergy": "trainyard.reproduce.synergy.paper",
    "smd": "trainyard.reproduce.smd.paper",
    "ring": "trainyard.reproduce.ring.paper",
    "market": "trainyard.reproduce.market.paper",
    "dl2": "trainyard.reproduce.dl2.paper",
}


def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of: {', '.join(PAPERS)}.", metavar="PAPER")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and shorter runs: minutes.")] = False,
    out: Annotated[
        str | None,
        typer.Option(help="Write the results into this directory [out/reproduce-PAPER].", metavar="DIR"),
    ] = None,
) -> None:
    """Repeat the experiments of a paper and print theirs beside ours."""
    from importlib import import_module

    from rich.console import Console

    from trainyard.cli.output import progress_bars
    from trainyard.errors import InputError, did_you_mean
    from trainyard.files.output import out_dir
    from trainyard.report.canvas import new_figure
    from trainyard.reproduce.findings import for_terminal, write_findings

    if paper not in PAPERS:
        raise InputError(f"unknown paper '{paper}'{did_you_mean(paper, PAPERS)}")
    study = import_module(PAPERS[paper])
    new_figure(1, 1)  # that plots are possible is better known before hours of simulation than after
    target = f"out/reproduce-{paper}" if out is None else out
    with out_dir(target) as directory, progress_bars([paper], study.steps(quick)) as bars:
        findings = study.reproduce(quick, lambda done: bars(0, done))
        page = write_findings(directory, findings)
    console = Console()
    for table in findings.tables:
        console.print(for_terminal(table))
    typer.echo(f"Results: {page}")
