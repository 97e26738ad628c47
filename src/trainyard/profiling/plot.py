"""A picture of a measured profile."""

from __future__ import annotations

import io

import numpy as np

from trainyard.errors import TrainyardError
from trainyard.files.output import write_bytes_atomic
from trainyard.files.reading import StrPath
from trainyard.profiling.profiler import Profiled, fitted_speeds

LINES = 5  # of memory, at most, beside the measured one


def plot_profile(found: Profiled, path_png: StrPath) -> None:
    """Draw measured speeds, the fitted model, and what less memory would leave of them."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise TrainyardError("plots need matplotlib: pip install 'trainyard[plots]'") from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    cpus = np.array([point.cpus for point in found.curve.points])
    fine = np.linspace(0, cpus[-1] * 1.25, 200)[1:]
    axis.plot(fine, fitted_speeds(found.profile, fine), color="#0072B2", label="fitted")
    axis.plot(cpus, [p.samples_per_s for p in found.curve.points], "o", color="#D55E00", label="measured")
    for gb, speeds in _slower(found):
        axis.plot(cpus, speeds, "--", lw=1, color="#777777")
        axis.annotate(
            f"{gb:g} GB", (cpus[-1], speeds[-1]), textcoords="offset points", xytext=(4, -3), fontsize="small"
        )
    axis.set(xlabel="CPUs", ylabel="samples/s", title=found.profile.name, ylim=(0, None), xlim=(0, None))
    axis.legend(fontsize="small")
    axis.grid(alpha=0.3)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120)
    write_bytes_atomic(path_png, data.getvalue())


def _slower(found: Profiled) -> list[tuple[float, list[float]]]:
    """Return (GB, speeds) for some sizes of memory that hold the script back."""
    rows = found.profile.tables.cpu_memory if found.profile.tables else ()
    by_memory: dict[float, list[float]] = {}
    for _, gb, speed in rows:
        by_memory.setdefault(gb, []).append(speed)
    best = [max(column) for column in zip(*by_memory.values(), strict=True)]
    slower = [(gb, speeds) for gb, speeds in by_memory.items() if speeds != best]
    return slower[:: max(1, -(-len(slower) // LINES))]
