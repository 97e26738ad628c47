"""`trainyard simulate`: one policy over one list of jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from trainyard.cli import options as o


def simulate(
    cluster: o.ClusterFile,
    jobs: o.JobsFile,
    policy: Annotated[str, typer.Option(help="Stage names joined by +, see `trainyard policies`.")] = "fifo",
    round_s: o.RoundS = None,
    restart_s: o.RestartS = None,
    start_s: o.StartS = 0.0,
    profiles: o.Profiles = None,
    seed: o.Seed = 0,
    until_s: o.UntilS = None,
    failures: o.Failures = None,
    mtbf_h: o.MtbfH = None,
    repair_h: o.RepairH = 1.0,
    out: o.Out = None,
    json_: o.Json = False,
) -> None:
    """Simulate one policy and print what became of the jobs."""
    from trainyard.cli.output import print_json, progress_bars, write_run
    from trainyard.engine.simulator import Simulator
    from trainyard.files.output import prepare_out_dir
    from trainyard.policy.grammar import parse_policy

    chosen = parse_policy(policy)
    settings = o.read_options(round_s, restart_s, start_s, seed, until_s)
    yard, work = o.read_inputs(cluster, jobs, profiles)
    broken = o.read_failures(yard, failures, mtbf_h, repair_h, seed)
    directory = prepare_out_dir(out) if out is not None else None
    with progress_bars([chosen.name], len(work)) as bars:
        result = Simulator(yard, work, chosen, settings, broken, lambda done: bars(0, done)).run()
    if directory is not None:
        write_run(directory, result)
    if json_:
        print_json(result.summary())
    else:
        from rich.console import Console

        from trainyard.report.table import summary_table

        Console().print(summary_table(result.summary()))
