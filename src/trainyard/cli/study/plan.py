"""`trainyard plan`: one decision on a snapshot, nothing executed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trainyard.cli import options as o


def plan(
    snapshot: Annotated[
        str, typer.Argument(help="Snapshot file (JSON); - reads standard input.", metavar="SNAPSHOT")
    ],
    policy: Annotated[str, typer.Option(help="Stage names joined by +, see `trainyard policies`.")] = "fifo",
    json_: o.Json = False,
) -> None:
    """Show what a policy would do now."""
    from trainyard import api
    from trainyard.cli.shown.as_json import print_json
    from trainyard.cli.usage import note
    from trainyard.files.snapshot import load_snapshot
    from trainyard.policy.grammar import parse_policy

    chosen = parse_policy(policy)
    decision = api.plan(load_snapshot(snapshot, api.known_models(), note), chosen)
    if json_:
        print_json(decision)
    else:
        _show(decision)


def _show(decision: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("job", "GPUs", "nodes", "CPUs", "GB", "samples/s", "finish_s")
    for job_id, it in decision["plan"].items():
        gpus = ", ".join(f"{count} {gpu_type}" for gpu_type, count in it["workers"].items())
        nodes = ", ".join(_place(node, share) for node, share in it["nodes"].items())
        held = [f"{sum(share[what] for share in it['nodes'].values()):.4g}" for what in ("cpus", "memory_gb")]
        speed, finish = f"{it['samples_per_s']:.4g}", f"{it['finish_s']:.0f}"
        table.add_row(escape(job_id), gpus, nodes, *held, speed, finish)
    for job_id, reason in decision["waiting"].items():
        table.add_row(escape(job_id), "waits", escape(reason), "", "", "", "", style="dim")
    console = Console()
    console.print(table)
    for job_id, it in decision.get("estimates", {}).items():
        console.print(_estimate(job_id, it), highlight=False, markup=False)
    for what, value in decision.get("notes", {}).items():
        console.print(f"{what}: {_said(value)}", highlight=False)


def _estimate(job_id: str, it: dict[str, Any]) -> str:
    """What is believed of a job whose length nobody told."""
    spread = f"{it['mean_s']:.0f} s of work ({it['p10_s']:.0f} to {it['p90_s']:.0f})"
    return f"{job_id}: {spread}, {it['remaining_s']:.0f} s left; source: {it['source']}"


def _said(value: Any) -> str:
    """A number, or several by name."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_said(each)}" for name, each in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _place(node: str, share: dict[str, Any]) -> str:
    """A node with the GPUs and parameter servers there."""
    servers = f"{share['servers']} server" + "s" * (share["servers"] > 1) if share["servers"] else ""
    workers = f"{node} x{share['gpus']}" if share["gpus"] else node
    return f"{workers} + {servers}" if servers else workers
