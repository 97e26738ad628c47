"""What `submit` and `run` send: the options, the command, and what the job takes from this shell."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

import typer

from trainyard.cli import options as o
from trainyard.cli.sharing import shares
from trainyard.cli.usage import duration, note, whole
from trainyard.errors import InputError

FROM_SHELL = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYTHONPATH", "LD_LIBRARY_PATH")
SECRET = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|API_KEY|ACCESS_KEY|PRIVATE_KEY)(_|$)", re.IGNORECASE
)

Body = dict[str, Any]


def _count(what: str, *names: str) -> Any:
    return typer.Option(*names, parser=whole, help=what, metavar="N")


def _duration(what: str) -> Any:
    return typer.Option(parser=duration, help=what, metavar="D")


def submission(
    command: Annotated[list[str], typer.Argument(help="What to run; put -- before it.", metavar="COMMAND")],
    name: Annotated[
        str | None, typer.Option(help="Its name (default: the program's).", metavar="NAME")
    ] = None,
    gpus: Annotated[int | None, _count("GPUs (default 1).")] = None,
    least: Annotated[int | None, _count("Fewest GPUs of an elastic job.", "--min")] = None,
    most: Annotated[int | None, _count("Most GPUs of an elastic job.", "--max")] = None,
    servers: Annotated[int | None, _count("Parameter servers.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Its profile, so that its speed is known.", metavar="NAME")
    ] = None,
    samples: Annotated[float | None, o.amount("All its work, in samples.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Who it counts for.", metavar="NAME")] = None,
    priority: Annotated[int | None, _count("From -100 to 100; higher goes first.")] = None,
    cpus: Annotated[float | None, o.amount("CPUs of the whole job.")] = None,
    memory_gb: Annotated[float | None, o.amount("Memory of the whole job.")] = None,
    gpu_type: Annotated[str | None, typer.Option(help="Only GPUs of this type.", metavar="TYPE")] = None,
    retries: Annotated[int | None, _count("How often it starts again after it failed.")] = None,
    after: Annotated[
        list[str] | None, typer.Option(help="Start when this job is done (may be repeated).", metavar="JOB")
    ] = None,
    time_limit: Annotated[float | None, _duration("Running time, all attempts together; as in 12h.")] = None,
    grace: Annotated[float | None, _duration("Time to save its work when it is stopped; as in 60s.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="A variable of the job (may be repeated).", metavar="NAME=VALUE")
    ] = None,
) -> Body:
    """Return what is submitted; names of jobs in `after` are as the user wrote them."""
    _no_job_file(command)
    given = {
        "name": name,
        "servers": servers,
        "model": model,
        "samples": samples,
        "tenant": tenant,
        "priority": priority,
        "cpus": cpus,
        "memory_gb": memory_gb,
        "gpu_types": None if gpu_type is None else [gpu_type],
        "retries": retries,
        "after": after or None,
        "time_limit_s": time_limit,
        "grace_s": grace,
    }
    return {
        "command": command,
        "workdir": _workdir(),
        "env": _environment(env or []),
        "gpus": _gpus(gpus, least, most),
        **{field: value for field, value in given.items() if value is not None},
    }


with_submission = shares("body", submission)  # the command gets a function that reads the options


def _no_job_file(command: list[str]) -> None:
    if len(command) == 1 and command[0].endswith((".yaml", ".yml")):
        raise InputError(
            f"{command[0]}: job files are not there yet; "
            "give options and the command: trainyard submit --gpus 1 -- python train.py"
        )


def _gpus(gpus: int | None, least: int | None, most: int | None) -> int | dict[str, int]:
    if least is None and most is None:
        return 1 if gpus is None else gpus
    if gpus is not None:
        raise InputError("--gpus is for a job of one size, --min and --max for an elastic one; give one kind")
    if least is None or most is None:
        raise InputError("--min and --max belong together; give both")
    return {"min": least, "max": most}


def _workdir() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InputError("this directory is gone; submit from one that exists") from None


def _environment(pairs: list[str]) -> dict[str, str]:
    """Return the variables of a job: some of this shell's, and those given."""
    shell = {name: os.environ[name] for name in FROM_SHELL if name in os.environ}
    return shell | dict(_variable(pair) for pair in pairs)


def _variable(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not name or not equals:
        raise InputError(f"--env '{pair}': give NAME=VALUE")
    if SECRET.search(name):
        note(f"{name} looks like a secret; the store keeps it as it is, and so does /proc for this user")
    return name, value
