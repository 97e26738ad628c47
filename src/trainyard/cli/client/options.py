"""The options and arguments of all commands that talk to a controller."""

from __future__ import annotations

from typing import Annotated

import typer

from trainyard.cli.client.finding import find
from trainyard.cli.client.link import Link
from trainyard.cli.sharing import shares

JobName = Annotated[
    str, typer.Argument(help="Its id, name, a unique beginning of one, or - for the last.", metavar="JOB")
]
NodeName = Annotated[str, typer.Argument(help="Its name, see `trainyard nodes`.", metavar="NODE")]


def connect(
    data: Annotated[
        str | None, typer.Option(help="Data directory of the controller.", metavar="DIR", show_default=False)
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Its address; the token is in TRAINYARD_TOKEN.", metavar="URL")
    ] = None,
) -> Link:
    """Find the controller that a command talks to."""
    return Link(lambda: find(url, data))


with_link = shares("link", connect)  # the command gets a function that connects
