"""The reproduction of SMD: its workload, a tiny experiment, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import one_by_one
from trainyard.policy.size.smd.offline import best_numbers
from trainyard.policy.size.smd.problem import (
    completion_s,
)
from trainyard.reproduce import study
from trainyard.reproduce.findings import write_findings
from trainyard.reproduce.smd import interval
from trainyard.reproduce.smd import paper as smd
from trainyard.reproduce.smd.workload import Workload, smd_jobs


@pytest.mark.parametrize("kind", [True, False])
def test_the_median_job_finishes_in_the_middle_of_the_utilities(kind):
    problem = smd_jobs(Workload(400, kind, 77)).problem
    best = best_numbers(problem)
    tau = completion_s(problem, best.workers, best.servers)[best.fits]
    assert np.median(tau) == pytest.approx(8, rel=0.2)
    assert best.fits.mean() > 0.99


def test_both_kinds_get_the_same_jobs():
    sync, asyn = (smd_jobs(Workload(20, kind, 1)) for kind in (True, False))
    assert np.array_equal(sync.problem.demands.limit, asyn.problem.demands.limit)
    assert np.array_equal(sync.utility.middle, asyn.utility.middle)


def test_time_unit_and_instance_can_be_chosen():
    hours = smd_jobs(Workload(20, True, 1, time_unit_s=3600.0)).problem
    seconds = smd_jobs(Workload(20, True, 1, time_unit_s=1.0)).problem
    assert seconds.per_worker == pytest.approx(3600 * hours.per_worker)
    small = smd_jobs(Workload(20, True, 1, instance=(1.0, 2.0, 3.0, 4.0))).problem.demands.limit
    assert np.array_equal(small[:, 3], 4 * small[:, 0])


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interval, "QUICK_SEEDS", 2)
        patch.setattr(interval, "JOBS", (40,))
        patch.setattr(interval, "FEW_JOBS", (10,))
        patch.setattr(interval, "UNITS", (1, 5))
        patch.setattr(interval, "EPS", 0.1)
        patch.setattr(study, "in_parallel", one_by_one)
        told = []
        findings = smd.reproduce(True, told.append)
        assert told == list(range(1, smd.steps(True) + 1))
    return findings


def rows_of(findings, name):
    table = next(table for table in findings.tables if table.name == name)
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def test_nobody_is_above_the_optimum_and_smd_is_near(tiny):
    for row in (*rows_of(tiny, "capacity"), *rows_of(tiny, "jobs")):
        most = row["optimum"] * (1 + 1e-9)
        assert row["ESW"] < row["SMD"] <= most
        assert row["Optimus"] <= row["Optimus by time"] * (1 + 1e-9) <= most * (1 + 1e-9)
        assert row["SMD"] > 0.98 * most
    for row in rows_of(tiny, "optimum"):
        assert 0.98 < row["least of all seeds"] <= row["SMD/optimum"] + 1e-12
    for row in rows_of(tiny, "use"):
        assert 0.3 < row["used/reserved"] < 1


def test_theirs_stand_beside_ours(tiny):
    last = rows_of(tiny, "capacity_gains")[-1]
    assert (last["training"], last["units"]) == ("async", 5)
    assert last["their SMD/ESW"] == pytest.approx(3109 / 2257)
    assert rows_of(tiny, "optimum")[0]["theirs"] == 0.76


def test_results_are_written(tiny, tmp_path):
    page = write_findings(tmp_path, tiny).read_text()
    assert "Fig. 11" in page
    assert set(json.loads((tmp_path / "results.json").read_text())) == {table.name for table in tiny.tables}
    assert len(tiny.pictures) == 5
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in tiny.pictures)
