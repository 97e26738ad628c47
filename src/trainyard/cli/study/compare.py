"""`trainyard compare`: several policies over the same jobs, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from trainyard.cli import options as o


@o.with_run
def compare(
    run: Callable[[], o.Run],
    policies: Annotated[str, typer.Option(help="Policies, separated by commas.", metavar="P1,P2,...")],
    out: o.Out = None,
    json_: o.Json = False,
) -> None:
    """Simulate several policies in parallel and print them in one table."""
    from trainyard.cli.output import print_json, progress_bars, require_plots, write_comparison
    from trainyard.files.output import prepare_out_dir
    from trainyard.policy.grammar import parse_policies
    from trainyard.sim.parallel import run_all

    chosen = parse_policies(policies)
    cluster, jobs, rules, failures = run()
    if out is not None:
        require_plots()  # before hours of simulation, not after
    directory = prepare_out_dir(out) if out is not None else None
    with progress_bars([p.name for p in chosen], len(jobs)) as bars:
        results = run_all(cluster, jobs, chosen, rules, failures, bars)
    summaries = [result.summary() for result in results]
    if json_:
        print_json(summaries)
    else:
        from rich.console import Console

        from trainyard.report.added import added_table
        from trainyard.report.table import comparison_table

        console = Console()
        console.print(comparison_table(summaries, width=console.width))
        if (gains := added_table(results)) is not None:
            console.print()
            console.print(gains)
    if directory is not None:
        report = write_comparison(directory, results)
        typer.echo(f"Report: {report}", err=json_)
