"""`trainyard evaluate`: policies, learned ones among them, on episodes that nothing was learnt from."""

from __future__ import annotations

from typing import Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.study import train as t
from trainyard.cli.usage import positive, whole


def evaluate(
    policies: Annotated[
        str,
        typer.Option(
            help="Policies, separated by commas; dl2(weights=FILE) for your own.", metavar="P1,P2,..."
        ),
    ] = "drf,optimus,lookahead,dl2",
    setting: t.Setting = None,
    cluster: t.MaybeCluster = None,
    jobs: t.MaybeJobs = None,
    profiles: o.Profiles = None,
    slot_s: t.SlotS = None,
    episode_jobs: t.EpisodeJobs = None,
    episodes: Annotated[int, typer.Option(parser=whole, help="Held-out episodes.", metavar="N")] = 10,
    json_: o.Json = False,
) -> None:
    """Run policies through held-out episodes and print average JCTs, with the first one's beside them."""
    from trainyard.cli.output import progress_bars
    from trainyard.cli.shown.as_json import print_json
    from trainyard.learn.evaluate import judge
    from trainyard.policy.grammar import parse_policies

    positive("--episodes", episodes)
    chosen = parse_policies(policies)
    split = t.episodes(setting, cluster, jobs, profiles, slot_s, episode_jobs)
    with progress_bars([policy.name for policy in chosen], episodes) as bars:
        verdict = judge(split.held_out, episodes, chosen, bars)
    if json_:
        print_json(verdict.records())
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{episodes} held-out episodes; times in slots of {split.slot_s:g} s")
    for heading in ("policy", "avg JCT", "sd", "vs first", "makespan", "best possible / avg JCT"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for row in verdict.records():
        better = f"{row['better_than_first']:+.1%}"
        numbers = (f"{row[key]:.3f}" for key in ("avg_jct_slots", "sd_slots"))
        table.add_row(
            row["policy"], *numbers, better, f"{row['makespan_slots']:.1f}", f"{row['bound_ratio']:.2f}"
        )
    Console().print(table)
