"""The DL2 cases: traces, speed table, results and scripted rollouts of the public simulator."""

from __future__ import annotations

from functools import cache

from cases import case
from trainyard.learn.settings.paper_jobs import KINDS, SETTINGS, Setting, dl2_job, profile_of
from trainyard.model.profile import Profile, Tables

KIND = {kind.model: kind for kind in KINDS}


@cache
def measured(model) -> Profile:
    """Speeds as measured, at every size in question; some measurements failed and are zero."""
    grid = case("dl2/speeds")[model]["grid"]
    rows = tuple(
        (w, p, max(speed, 0.0)) for p, speeds in enumerate(grid, 1) for w, speed in enumerate(speeds, 1)
    )
    return profile_of(KIND[model], Tables(workers_servers=rows))


def traces(name) -> tuple[Setting, list]:
    """The setting, and jobs and results of each trace."""
    setting, cases = SETTINGS[name], case(f"dl2/{name}")["cases"]
    return setting, [(jobs_of(setting, given["jobs"]), given["results"]) for given in cases]


def jobs_of(setting, rows):
    """Make jobs of rows of model, slot of arrival, epochs and samples in an epoch."""
    jobs = []
    for number, (model, slot, epochs, epoch_size) in enumerate(rows, 1):
        jobs.append(dl2_job(setting, KIND[model], str(number), slot, measured(model)))
        assert jobs[-1].samples == epochs * epoch_size
    return jobs
