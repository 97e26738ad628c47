"""`trainyard compare`: several policies over the same jobs, side by side."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o

if TYPE_CHECKING:
    from trainyard.sim.result import Result


@o.with_run
def compare(
    run: partial[o.Run],
    policies: Annotated[str, typer.Option(help="Policies, separated by commas.", metavar="P1,P2,...")],
    out: o.Out = None,
    json_: o.Json = False,
) -> None:
    """Simulate several policies in parallel and print them in one table."""
    from trainyard.cli.made_with import made_with
    from trainyard.cli.output import progress_bars, require_plots, write_comparison
    from trainyard.files.output import out_dir
    from trainyard.policy.grammar import parse_policies
    from trainyard.sim.parallel import run_all

    chosen = parse_policies(policies)
    cluster, jobs, rules, failures = run()
    if out is not None:
        require_plots()  # before hours of simulation, not after
    with out_dir(out) if out is not None else nullcontext() as directory:
        with progress_bars([p.name for p in chosen], len(jobs)) as bars:
            results = run_all(cluster, jobs, chosen, rules, failures, bars)
        report = None if directory is None else write_comparison(directory, results, made_with(run))
    _show(results, json_)
    if report is not None:
        typer.echo(f"Report: {report}", err=json_)


def _show(results: list[Result], json_: bool) -> None:
    """Print the results as JSON or as tables."""
    from trainyard.cli.shown.as_json import print_json

    summaries = [result.summary() for result in results]
    if json_:
        print_json(summaries)
    else:
        from rich.console import Console

        from trainyard.report.added import added_table
        from trainyard.report.outcomes import how_they_ended
        from trainyard.report.table import comparison_table
        from trainyard.report.tenants import tenant_table

        console = Console()
        console.print(comparison_table(summaries, width=console.width))
        if ended := how_they_ended(summaries):
            typer.echo(ended)
        for table in (tenant_table(summaries, width=console.width), added_table(results)):
            if table is not None:
                console.print()
                console.print(table)
