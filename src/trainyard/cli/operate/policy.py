"""`trainyard policy`: which policy decides, and `policy set P`: another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import with_link

app = typer.Typer(invoke_without_command=True)


@app.callback()
@with_link
def policy(context: typer.Context, *, link: Callable[[], Link], json_: o.Json = False) -> None:
    """Show the policy that decides; `policy set P` gives another one."""
    if context.invoked_subcommand is None:
        _tell(link().get("/policy"), json_)


@app.command("set")
@with_link
def change(
    policy: Annotated[
        str, typer.Argument(help="Stage names joined by +, see `trainyard policies`.", metavar="P")
    ],
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """Let another policy decide from now on."""
    _tell(link().post("/policy", {"policy": policy}), json_)


def _tell(answer: Any, as_json: bool) -> None:
    from trainyard.cli.shown.as_json import print_json

    print_json(answer) if as_json else print(answer["policy"])
