"""`trainyard drain` and `undrain`: empty a node, and use it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import NodeName, with_link


@with_link
def drain(
    node: NodeName,
    reason: Annotated[str, typer.Option(help="Why; the log keeps it.", metavar="TEXT")] = "",
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """Empty a node: nothing starts there any more, what runs there goes on until it ends."""
    _tell(link().post(f"/nodes/{node}/drain", {"reason": reason} if reason else {}), json_)


@with_link
def undrain(node: NodeName, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Use a node again."""
    _tell(link().post(f"/nodes/{node}/undrain"), json_)


def _tell(node: Mapping[str, Any], as_json: bool) -> None:
    from trainyard.cli.shown.as_json import print_json

    if as_json:
        print_json(node)
    else:
        left = f" ({', '.join(node['jobs'])} still there)" if node["state"] == "draining" else ""
        print(f"{node['node']} {node['state']}{left}")
