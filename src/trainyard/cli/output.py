"""What commands print and write."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from trainyard.cli.shown.as_json import to_json
from trainyard.errors import InputError
from trainyard.files.output import write_text_atomic
from trainyard.sim.result import Result

JOBS_COLUMNS = (
    *("job_id", "arrival_s", "start_s", "finish_s", "jct_s", "queue_s", "restarts", "gpu_s"),
    *("tenant", "model", "gpus", "outcome", "preemptions", "user", "priority"),
)


def write_run(directory: Path, result: Result) -> None:
    """Write summary.json and jobs.csv."""
    write_text_atomic(directory / "jobs.csv", jobs_csv(result))
    write_text_atomic(directory / "summary.json", to_json(result.summary()) + "\n")


def jobs_csv(result: Result) -> str:
    """Return one line per job, in order of arrival; what never happened is empty."""
    o = result.outcomes
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(JOBS_COLUMNS)
    times = (o.arrival_s, o.start_s, o.finish_s, o.jct_s, o.queue_s, o.restarts, o.gpu_s)
    columns = (*(column.tolist() for column in times), o.tenant, o.model, o.gpus.tolist(), o.outcome)
    later = (o.preemptions.tolist(), o.user, o.priority.tolist())
    for row in zip(o.job_id, *columns, *later, strict=True):
        writer.writerow(["" if cell != cell else cell for cell in row])
    return text.getvalue()


def require_plots() -> None:
    """Raise InputError if a report could not be drawn."""
    for module in ("matplotlib", "plotly"):
        if find_spec(module) is None:
            raise InputError(
                f"--out: the report needs {module}; pip install 'trainyard[plots]', or leave --out out"
            )


def write_comparison(directory: Path, results: Sequence[Result], options: Mapping[str, str]) -> Path:
    """Write every run into a directory of its own, and the report, which names the options, beside them."""
    from trainyard.report.html import write_report
    from trainyard.report.png import write_pngs

    for number, result in enumerate(results, 1):
        own = directory / f"{number:02d}-{_file_name(result.policy)}"
        own.mkdir(exist_ok=True)
        write_run(own, result)
    write_text_atomic(directory / "summary.json", to_json([r.summary() for r in results]) + "\n")
    write_pngs(directory, results)
    report = directory / "report.html"
    write_report(report, results, options=options)
    return report


def _file_name(policy: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.+=" else "_" for c in policy).strip("_")


@contextmanager
def progress_bars(names: Sequence[str], jobs: int) -> Iterator[Callable[[int, int], None]]:
    """Show finished jobs per policy on stderr; nothing when that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _policy, _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks = [bars.add_task(name, total=jobs) for name in names]
        yield lambda policy, done: bars.update(tasks[policy], completed=done)
