"""`trainyard up`: start a controller; this process is it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.usage import in_bounds
from trainyard.errors import InputError, did_you_mean
from trainyard.model.limits import MAX_S, MAX_SEED, SHORTEST_ROUND_S

if TYPE_CHECKING:
    from trainyard.server.opening import Start

BACKENDS = ("local",)

Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Data directory (default: $TRAINYARD_DATA, else ~/.local/share/trainyard).",
        metavar="DIR",
    ),
]


def up(
    cluster: Annotated[
        str | None,
        typer.Option(help="Cluster file (YAML); without it this machine is the cluster.", metavar="FILE"),
    ] = None,
    backend: Annotated[str, typer.Option(help="What runs the jobs.", metavar="NAME")] = "local",
    policy: Annotated[
        str | None,
        typer.Option(help="Policy (default: as before, at first srtf+steepest+tune).", metavar="P"),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Store: URL, env:NAME or file:PATH (default: SQLite in the data directory).", metavar="URL"
        ),
    ] = None,
    data: Data = None,
    listen: Annotated[
        str, typer.Option(help="Where the API listens.", metavar="HOST:PORT")
    ] = "127.0.0.1:7410",
    round_s: o.RoundS = None,
    profiles: o.Profiles = None,
    seed: o.Seed = 0,
    settings: Annotated[
        str | None,
        typer.Option(help="Time-outs and limits (YAML: NAME: NUMBER, one a line).", metavar="FILE"),
    ] = None,
) -> None:
    """Start a controller; it prints `ready URL` when it accepts jobs, and runs until `trainyard down`."""
    from trainyard.server.process import run

    if backend not in BACKENDS:
        raise InputError(f"--backend {backend}: there is no such backend{did_you_mean(backend, BACKENDS)}")
    in_bounds("--round-s", round_s, SHORTEST_ROUND_S, MAX_S)
    in_bounds("--seed", seed, 0, MAX_SEED)
    run(_start(cluster, policy, store, data, listen, round_s, profiles, seed, settings))


def _start(
    cluster: str | None,
    policy: str | None,
    store: str | None,
    data: str | None,
    listen: str,
    round_s: float | None,
    profiles: str | None,
    seed: int,
    settings: str | None,
) -> Start:
    """Read and check everything that was given."""
    from trainyard.api import known_models, load_cluster
    from trainyard.live.daemon import Options
    from trainyard.live.settings import Settings, read_settings
    from trainyard.policy.grammar import parse_policy
    from trainyard.server.network import address_of
    from trainyard.server.opening import Start
    from trainyard.server.place import data_directory

    host, port = address_of(listen)
    if policy is not None:
        parse_policy(policy)
    options = Options(
        None if cluster is None else load_cluster(cluster),
        policy,
        round_s,
        seed,
        Settings() if settings is None else read_settings(Path(settings)),
    )
    return Start(options, data_directory(data), host, port, store, known_models(profiles))
