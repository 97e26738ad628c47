"""`trainyard logs`: what a job printed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.client.link import Link
from trainyard.cli.client.options import JobName, with_link
from trainyard.cli.usage import whole
from trainyard.errors import InputError

if TYPE_CHECKING:
    from trainyard.cli.jobs.output import Output
    from trainyard.cli.jobs.sinks import Sink


@with_link
def logs(
    job: JobName,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job ends.")] = False,
    rank: Annotated[str, typer.Option(help="Of which worker, or `all`.", metavar="R")] = "0",
    attempt: Annotated[
        int | None,
        typer.Option(parser=whole, help="Of which attempt (default: the latest).", metavar="A"),
    ] = None,
    tail: Annotated[int | None, typer.Option(parser=whole, help="Only the last lines.", metavar="N")] = None,
    *,
    link: Callable[[], Link],
    json_: o.Json = False,
) -> None:
    """Show the output of a job."""
    from trainyard.cli.jobs.output import Output

    number = _rank(rank)
    if tail is not None and tail < 0:
        raise InputError(f"--tail {tail}: give 0 or more")
    asked = link()
    found = asked.job(job)
    sink = _sink(found["job_id"], follow, number is None, json_)
    output = Output(asked, found, sink, number, _attempt(attempt, found["attempt"]))
    output.only_last(tail)
    if follow:
        _follow(asked, output)
    else:
        _show(output)
    sink.end()
    _print_whole(sink)


def _sink(job_id: str, follows: bool, named: bool, json_: bool) -> Sink:
    from trainyard.cli.jobs.sinks import Lines, Screen, Whole

    if not json_:
        return Screen(sys.stdout, named)
    return Lines(job_id) if follows else Whole(job_id)


def _follow(link: Link, output: Output) -> None:
    from trainyard.cli.client.following import follow

    follow(link, output.topics, output.hand_on)


def _show(output: Output) -> None:
    if not output.job["attempt"]:
        print(f"{output.job['job_id']} has not started yet", file=sys.stderr)
    output.hand_on()


def _print_whole(sink: Sink) -> None:
    from trainyard.cli.jobs.sinks import Whole
    from trainyard.cli.shown.as_json import print_json

    if isinstance(sink, Whole):
        print_json(sink.pieces())


def _rank(text: str) -> int | None:
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"--rank '{text}': give a number from 0, or all")
    return int(text)


def _attempt(given: int | None, latest: int) -> int | None:
    if given is not None and not 1 <= given <= latest:
        known = f"a number from 1 to {latest}" if latest else "none, for it has not started yet"
        raise InputError(f"--attempt {given}: give {known}")
    return given
