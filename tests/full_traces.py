"""The public traces have the statistics that were measured from the same files independently.

They are too large to be part of this repository: `make test-traces TRACES=DIR` reads them from DIR.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from trace_checks import check_forms_of_philly, check_sizes, check_small, gpu_time_shares
from trainyard.trace.detect import read_trace
from trainyard.trace.stats import trace_stats

FILES = {
    "philly_all": ("philly/rfold_philly_trace.csv", "rfold"),
    "philly_sia_vc": ("philly/sia_philly.csv", "philly-vc"),
    "helios_venus": ("helios/venus_gpu_jobs.csv", "helios"),
    "alibaba_pai_2020_tasks": ("alibaba_pai_2020/pai_task_sample_60k.csv", "pai"),
    "thetagpu_2023": ("thetagpu/data_thetagpu.csv", "thetagpu"),
    "alibaba_openb_2023": ("alibaba_gpu_2023/openb_pod_list_default.csv", "openb"),
}
# jobs, days, mean GPUs, share of 1-GPU jobs, mean s, median s, p95 s, p99 s, load in GPUs
MEASURED = {
    "philly_all": (111_549, 129.36, 1.742, 0.867, 35_595, 1_321, 123_923, 755_541, 1_166.7),
    "philly_sia_vc": (82_247, 108.9, 1.304, 0.932, 13_136, 1_144, 43_646, 254_758, 374),
    "helios_venus": (125_303, 193.83, 6.736, 0.518, 9_088, 204, 58_054, 172_800, 521),
    "alibaba_pai_2020_tasks": (60_105, 63.68, 4.969, 0.770, 5_029, 618, 22_751, 66_192, 450),
    "thetagpu_2023": (22_581, 208.0, 1.452, 0.834, 6_245, 743, 43_202, 43_204, 12.2),
    "alibaba_openb_2023": (7_064, 149.33, 1.052, 0.989, 27_176, 545, 14_700, 113_363, 16.7),
}
# jobs/h, variation of gaps, dispersion in 10 min, 1 h and 24 h, peak/trough hour, weekend/weekday; the window
# they were measured in is not quite our busy days
BURSTS = {
    "philly_all": (49.7, 10.743, 57.49, 145.89, 791.02, 2.61, 0.487),
    "philly_sia_vc": (36.3, 10.275, 57.11, 159.38, 776.89, 2.64, 0.546),
    "helios_venus": (28.4, 4.472, 14.91, 38.88, 152.74, 8.44, 0.625),
    "thetagpu_2023": (4.5, 5.796, 3.15, 8.29, 53.64, 2.33, 0.639),
}


def path_of(name):
    """Where a trace is; without a folder of traces there is nothing to test, which is an error."""
    folder = os.environ.get("TRAINYARD_TRACES")
    assert folder, "TRAINYARD_TRACES is not set; it names the folder with the public traces"
    return Path(folder) / name


@cache
def measure(name):
    path, form = FILES[name]
    trace = read_trace(path_of(path))
    assert trace.format == form
    return trace_stats(trace.jobs, trace.origin_s)


@pytest.mark.parametrize("name", FILES)
def test_sizes_and_run_times(name):
    check_sizes(measure(name), MEASURED[name], load_gpus=0.06)


@pytest.mark.parametrize("name", BURSTS)
def test_arrivals(name):
    arrivals = measure(name).arrivals
    rate, gaps, *dispersion, peak, weekend = BURSTS[name]
    assert arrivals.rate_per_h == pytest.approx(rate, rel=0.07)
    assert arrivals.gap_cv == pytest.approx(gaps, rel=0.06)
    assert list(arrivals.dispersion.values()) == pytest.approx(dispersion, rel=0.1)
    assert arrivals.peak_to_trough == pytest.approx(peak, rel=0.02)
    assert arrivals.weekend_to_weekday == pytest.approx(weekend, rel=0.06)


def test_share_of_gpu_time_by_class():
    expected = {"1": 0.0467, "2-4": 0.0791, "5-8": 0.2862, "9-32": 0.4249, "33+": 0.1632}
    assert gpu_time_shares(measure("helios_venus")) == pytest.approx(expected, abs=0.0002)


def test_tenants_and_status():
    tenants = measure("philly_sia_vc").tenants
    assert list(tenants)[:3] == ["6214e9", "11cb48", "6c71a0"]
    assert tenants["6214e9"] == pytest.approx(0.501, abs=0.001)
    theta = measure("thetagpu_2023").statuses
    assert theta == pytest.approx({"Failed": 0.554, "Pass": 0.244, "Killed": 0.202}, abs=0.001)


def test_the_three_forms_of_philly_agree():
    rfold, vc, attempts = (
        read_trace(path_of(f"philly/{name}"))
        for name in ("rfold_philly_trace.csv", "sia_philly.csv", "lumos_philly_df_schedule.csv")
    )
    assert len(attempts.jobs) == 151_816
    week = 604_800
    check_forms_of_philly(rfold, rfold.origin_s + week, vc, vc.origin_s + 4 * week, attempts)


@pytest.mark.parametrize(
    ("path", "jobs", "gpus"),
    [
        ("tiresias/60_job.csv", 60, 2.833),
        ("gavel/max_min_fairness.trace", 96, 1.760),
        ("gavel/minimize_makespan.trace", 100, 1.75),
        ("sia_pollux/newtrace_workload-1.csv", 960, 9.396),
        ("sia_pollux/philly_workload-2.csv", 160, 10.0625),
        ("sia_pollux/saturn_workload-3.csv", 160, 9.0875),
    ],
)
def test_small_workloads(path, jobs, gpus):
    check_small(read_trace(path_of(path)), jobs, gpus)
