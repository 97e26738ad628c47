"""`trainyard nodes`: the nodes, and what is used of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import with_link

HEADINGS = ("NODE", "STATE", "TYPE", "GPUS used/all", "CPUS", "MEM GB", "JOBS")


@with_link
def nodes(*, link: Callable[[], Link], json_: o.Json = False) -> None:
    """List the nodes and what is used of them."""
    from trainyard.cli.shown import table
    from trainyard.cli.shown.as_json import print_json

    found = link().get("/nodes")["nodes"]
    if json_:
        print_json(found)
    else:
        table.show(HEADINGS, [row(node) for node in found])


def row(node: Mapping[str, Any]) -> list[str]:
    """Return one line of `nodes`."""
    return [
        node["node"],
        node["state"],
        node["gpu_type"],
        f"{node['gpus_used']}/{node['gpus']}",
        f"{node['cpus_used']:g}/{node['cpus']:g}",
        f"{node['memory_gb_used']:.4g}/{node['memory_gb']:.4g}",
        " ".join([*node["jobs"], *_remarks(node)]) or "-",
    ]


def _remarks(node: Mapping[str, Any]) -> list[str]:
    """Say what else there is to know of a node."""
    broken = [f"(GPU {index} is broken)" for index in node["gpus_broken"]]
    return [*broken, f'("{node["reason"]}")'] if node.get("reason") else broken
