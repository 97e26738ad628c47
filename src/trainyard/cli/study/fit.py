"""`trainyard fit`: make a profile of measured speeds."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from trainyard.cli import options as o
from trainyard.cli.usage import in_bounds, positive, whole
from trainyard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainyard.model.profile import Profile

MOST_SAMPLES = 10**9
LEAST_CONDITION, MOST_CONDITION = 1e-6, 1e12  # of bandwidths and sizes


def fit(
    samples: Annotated[
        str, typer.Argument(help="Measured speeds (CSV); - reads standard input.", metavar="SAMPLES")
    ],
    out: o.ProfilesOut = None,
    name: Annotated[str | None, typer.Option(help="Name of the profile (default: the file's).")] = None,
    batch: Annotated[int, typer.Option(parser=whole, help="Samples of a step.", metavar="K")] = 1,
    weak: Annotated[bool, typer.Option("--weak", help="The batch is that of each worker.")] = False,
    network_gbps: Annotated[float | None, o.amount("Bandwidth between nodes (default: 10).")] = None,
    intra_gbps: Annotated[float | None, o.amount("Bandwidth inside a node (default: 100).")] = None,
    dataset_gb: Annotated[float | None, o.amount("Size of the dataset, if memory mattered.")] = None,
    storage_mbps: Annotated[float | None, o.amount("Storage bandwidth (default: 500).")] = None,
    json_: o.Json = False,
) -> None:
    """Fit a profile to measured speeds, and say how well it fits."""
    from trainyard.files.profiles import save_profile
    from trainyard.profiling.fit import doubts, fit_profile
    from trainyard.profiling.samples import Setting, load_samples

    if name == "":
        raise InputError("--name is empty; give a name such as resnet, or leave it out")
    if not 1 <= batch <= MOST_SAMPLES:
        raise InputError(f"--batch {batch}: give a whole number from 1 to {MOST_SAMPLES}")
    conditions = {"network_gbps": network_gbps, "intra_gbps": intra_gbps, "dataset_gb": dataset_gb}
    given = {
        key: value
        for key, value in (conditions | {"storage_mbps": storage_mbps}).items()
        if value is not None
    }
    for key, value in given.items():
        option = f"--{key.replace('_', '-')}"
        positive(option, value)
        in_bounds(option, value, LEAST_CONDITION, MOST_CONDITION)
    if storage_mbps is not None and dataset_gb is None:
        raise InputError("--storage-mbps goes with --dataset-gb; give that too, or leave it out")
    setting = Setting(batch, "weak" if weak else "strong", **given)
    measured = load_samples(samples)
    fitted = fit_profile(measured, setting, name or _stem(samples))
    if out is not None:
        save_profile(out, fitted)
    _print(fitted, out, json_)
    for line in doubts(fitted, measured, setting):
        print(f"trainyard: warning: {line}", file=sys.stderr)


def _stem(path: str) -> str:
    return "profile" if path == "-" else PurePath(path).name.partition(".")[0] or "profile"


def _print(fitted: Profile, out: str | None, json_: bool) -> None:
    from trainyard.cli.shown.as_json import print_json
    from trainyard.files.profiles import profile_record

    record = profile_record(fitted)
    if json_:
        print_json({"name": fitted.name, "profile": record})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("part", "fitted", title=fitted.name)
    for key, value in _flat(record):
        table.add_row(key, value)
    Console(highlight=False).print(table)
    if out is not None:
        print(f"written to {out}")


def _flat(record: dict[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, f"{value:g}" if isinstance(value, float) else str(value)
