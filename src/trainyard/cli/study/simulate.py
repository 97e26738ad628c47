"""`trainyard simulate`: one policy over one list of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o
from trainyard.errors import InputError

if TYPE_CHECKING:
    from trainyard.learn.online import Online
    from trainyard.policy.policy import Policy


@o.with_run
def simulate(
    run: Callable[[], o.Run],
    policy: Annotated[str, typer.Option(help="Stage names joined by +, see `trainyard policies`.")] = "fifo",
    out: o.Out = None,
    learn_online: Annotated[
        str | None,
        typer.Option(
            help="Let a dl2 policy learn while it runs; its weights and the guard's verdicts go here.",
            metavar="DIR",
        ),
    ] = None,
    snapshot_at: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Write the state before the first decision at this time or later, for `trainyard plan`.",
            metavar="S FILE",
        ),
    ] = None,
    json_: o.Json = False,
) -> None:
    """Simulate one policy and print what became of the jobs."""
    from trainyard.cli.output import progress_bars, write_run
    from trainyard.cli.shown.as_json import print_json
    from trainyard.cli.study.snapshot_at import SnapshotAt
    from trainyard.files.output import out_dir
    from trainyard.policy.grammar import parse_policy
    from trainyard.sim.clock import Simulator

    chosen = parse_policy(policy)
    cluster, jobs, rules, failures = run()
    if rules.unknown_durations and learn_online is not None:
        raise InputError("--learn-online learns from the work of jobs; leave out --unknown-durations")
    with (
        out_dir(out) if out is not None else nullcontext() as directory,
        _learning(chosen, rules.round_s, learn_online) as online,
    ):
        saving = None if snapshot_at is None else SnapshotAt(*snapshot_at, online)
        watcher = saving or online
        with progress_bars([chosen.name], len(jobs)) as bars:
            simulator = Simulator(
                cluster, jobs, chosen, rules, failures, lambda done: bars(0, done), watcher=watcher
            )
            result = simulator.run()
        if saving is not None:
            saving.end()
        if directory is not None:
            write_run(directory, result)
    if json_:
        print_json(result.summary())
    else:
        from rich.console import Console

        from trainyard.report.fallback import fallback
        from trainyard.report.table import summary_table
        from trainyard.report.tenants import tenant_table

        console, summary = Console(), result.summary()
        console.print(summary_table(summary))
        if (tenants := tenant_table([summary], width=console.width)) is not None:
            console.print()
            console.print(tenants)
        if left := fallback(result):
            typer.echo(left)
        if online is not None:
            for verdict in online.verdicts:
                typer.echo(str(verdict))
            taken = sum(verdict.taken for verdict in online.verdicts)
            typer.echo(f"Learning: new weights were taken {taken} times, see {learn_online}")


@contextmanager
def _learning(policy: Policy, round_s: float | None, directory: str | None) -> Iterator[Online | None]:
    """Let a policy learn on, if that is wanted."""
    if directory is None:
        yield None
        return
    from trainyard.cli.study.train import require_torch
    from trainyard.files.output import out_dir
    from trainyard.learn.online import Online, check_learns

    if round_s is None:
        raise InputError("--learn-online goes by rounds; give --round-s N, such as 600")
    check_learns(policy)
    require_torch()
    with out_dir(directory) as made:
        online = Online(policy, made)
        try:
            yield online
        finally:
            online.close()
