"""`trainyard profile`: run a training script for a while and write down how its speed depends on CPUs."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from trainyard.cli import options as o
from trainyard.cli.usage import positive
from trainyard.errors import InputError

if TYPE_CHECKING:
    from trainyard.profiling.measure import Notify, Waiting
    from trainyard.profiling.memory import Dataset
    from trainyard.profiling.profiler import Profiled

MOST_S = 3600
LEAST_CPUS = 0.1


def profile(
    command: Annotated[
        list[str], typer.Argument(help="The script to run; put -- before it.", metavar="COMMAND")
    ],
    cpus: Annotated[
        str | None,
        typer.Option(help="CPU counts to choose from, as in 1,1.5,2 (default: all here).", metavar="LIST"),
    ] = None,
    memory_gb: Annotated[
        str | None, typer.Option(help="GB per worker (default: tenths of the dataset).", metavar="LIST")
    ] = None,
    dataset_gb: Annotated[float | None, o.amount("Size of the dataset.")] = None,
    sample_kb: Annotated[float | None, o.amount("Size of a sample.")] = None,
    storage_mbps: Annotated[float | None, o.amount("Storage bandwidth per worker.")] = None,
    seconds: Annotated[float, o.amount("Seconds to measure at each CPU count.")] = 5.0,
    name: Annotated[str | None, typer.Option(help="Name of the profile (default: the script's).")] = None,
    out: o.ProfilesOut = None,
    plot: Annotated[str | None, typer.Option(help="Also draw it.", metavar="PNG")] = None,
    json_: o.Json = False,
) -> None:
    """Measure how the speed of a training script depends on CPUs, and model how it depends on memory."""
    from trainyard.cli.shown.as_json import print_json
    from trainyard.files.profiles import profiles_at, save_profile
    from trainyard.profiling.profiler import default_cpus, profile_script, remarks

    if not 0 < seconds <= MOST_S:
        raise InputError(f"--seconds {seconds:g}: give a number above 0, at most {MOST_S}")
    grid = default_cpus() if cpus is None else _cpu_list(cpus)
    dataset = _dataset(dataset_gb, sample_kb, storage_mbps)
    memory = [] if memory_gb is None else _numbers("--memory-gb", memory_gb, 0)
    if memory and dataset is None:
        raise InputError("--memory-gb: memory matters only with --dataset-gb, --sample-kb and --storage-mbps")
    if name == "":
        raise InputError("--name is empty; give a name such as resnet, or leave it out")
    if plot is not None and not plot.lower().endswith(".png"):
        raise InputError(f"--plot '{plot}': only PNG can be drawn; give a name that ends in .png")
    for path in (out, plot):
        if path is not None:
            _refuse_unwritable(path)  # before time is spent
    if out is not None:
        profiles_at(out)
    with _stopped_by_signals(), _shown() as (show, wait):
        found = profile_script(
            command, grid, seconds, name=name or "", memory_gb=memory, dataset=dataset,
            sample_kb=sample_kb or 0.0, notify=show, waiting=wait,
        )  # fmt: skip
    if out is not None:
        save_profile(out, found.profile)
    if plot is not None:
        from trainyard.profiling.plot import plot_profile

        plot_profile(found, plot)
    lines = remarks(found, dataset)
    if json_:
        print_json(_as_data(found, lines))
    else:
        _print(found, lines, out)


def _cpu_list(text: str) -> list[float]:
    from trainyard.profiling.share import available_cpus

    counts, most = _numbers("--cpus", text, LEAST_CPUS), len(available_cpus())
    if max(counts) > most:
        raise InputError(f"--cpus {max(counts):g}: there are {most} CPUs here; give at most {most}")
    return counts


def _numbers(option: str, text: str, least: float) -> list[float]:
    try:
        found = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise InputError(f"{option} '{text}': give numbers separated by commas, such as 1,2,4") from None
    for wrong in found:
        if not least <= wrong < float("inf"):
            raise InputError(f"{option} {wrong:g}: give {least:g} or more")
    return found


def _dataset(dataset_gb: float | None, sample_kb: float | None, storage_mbps: float | None) -> Dataset | None:
    from trainyard.profiling.memory import Dataset

    given = {"--dataset-gb": dataset_gb, "--sample-kb": sample_kb, "--storage-mbps": storage_mbps}
    for option, value in given.items():
        positive(option, value)
    missing = [option for option, value in given.items() if value is None]
    if dataset_gb is None or storage_mbps is None or missing:
        if len(missing) < len(given):
            raise InputError(
                f"give {' and '.join(missing)} too: the memory axis needs all of {', '.join(given)}"
            )
        return None
    return Dataset(dataset_gb, storage_mbps)


def _refuse_unwritable(path: str) -> None:
    from trainyard.files.output import prepare_out_file

    if not path:
        raise InputError("the name of a file to write is empty; give one such as out.yaml")
    target = prepare_out_file(path)
    try:
        if target.exists() and not target.is_file():
            target.open("ab").close()  # a device
        else:
            tempfile.NamedTemporaryFile(dir=target.parent).close()
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}; name another place"
        raise InputError(what, where=path) from None


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """End the script also when this process is told to end."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    kinds = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(kind, interrupt) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


@contextmanager
def _shown() -> Iterator[tuple[Notify, Waiting]]:
    """Show the speed on stderr as it is reported, or that none is; nothing when that is not a terminal."""
    if not sys.stderr.isatty():
        yield (lambda _cpus, _speed: None), (lambda _cpus, _seconds: None)
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status("starting") as status:

        def wait(cpus: float, seconds: float) -> None:
            status.console.print(f"{cpus:g} CPUs: no line such as '123.4 samples/s' for {seconds:.0f} s yet")

        yield (lambda cpus, speed: status.update(f"{cpus:g} CPUs: {speed:,.1f} samples/s")), wait


def _as_data(found: Profiled, lines: list[str]) -> dict[str, Any]:
    from dataclasses import asdict

    from trainyard.files.profiles import profile_record

    return {
        "name": found.profile.name,
        "points": [asdict(point) for point in found.curve.points],
        "grid": found.curve.grid,
        "gain": found.gain,
        "error": found.error,
        "model_error": found.model_error,
        "remarks": lines,
        "profile": profile_record(found.profile),
    }


def _print(found: Profiled, lines: list[str], out: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("CPUs", "samples/s", "reports", "lost to others", title=found.profile.name)
    for point in found.curve.points:
        lost = f"{point.lost:.0%}"
        table.add_row(f"{point.cpus:g}", f"{point.samples_per_s:,.1f}", str(point.reports), lost)
    console = Console(highlight=False)
    console.print(table)
    for line in [*lines, *([f"written to {out}"] if out is not None else [])]:
        print(line)
