"""The DL2 cases of ../shared: traces, speed table, results and scripted rollouts of the public simulator."""

from __future__ import annotations

import json
from functools import cache

from conftest import SHARED
from trainyard.learn.settings.paper_jobs import KINDS, SETTINGS, Setting, dl2_job, profile_of
from trainyard.model.profile import Profile, Tables

FOLDER = SHARED / "cases" / "dl2"
KIND = {kind.model: kind for kind in KINDS}


@cache
def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


@cache
def measured(model) -> Profile:
    """Speeds as measured, at every size in question; some measurements failed and are zero."""
    grid = read("speed_table")["models"][model]["interp_grid_1to17"]
    rows = tuple(
        (w, p, max(speed, 0.0)) for p, speeds in enumerate(grid, 1) for w, speed in enumerate(speeds, 1)
    )
    return profile_of(KIND[model], Tables(workers_servers=rows))


def traces(name) -> tuple[Setting, list]:
    """The setting, and jobs and results of each trace."""
    setting, cases = SETTINGS[name], read(f"trace_{name}_seed9973")["cases"]
    return setting, [([job_of(setting, job) for job in case["jobs"]], case["results"]) for case in cases]


def job_of(setting, job):
    model = job["model"]
    made = dl2_job(setting, KIND[model], str(job["id"]), job["arrival_slot"], measured(model))
    assert made.samples == job["num_epochs"] * job["epoch_size"]
    return made
