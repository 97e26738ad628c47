"""The public traces have the statistics that were measured from the same files independently."""

import pytest

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


@pytest.fixture(scope="module")
def found():
    return {}


def measure(shared, found, name):
    if name not in found:
        path, form = FILES[name]
        trace = read_trace(shared / "data" / path)
        assert trace.format == form
        found[name] = trace_stats(trace.jobs, trace.origin_s)
    return found[name]


@pytest.mark.parametrize("name", FILES)
def test_sizes_and_run_times(shared, found, name):
    stats = measure(shared, found, name)
    jobs, days, gpus, single, mean, median, p95, p99, load = MEASURED[name]
    assert stats.jobs == jobs
    assert stats.span_s / 86400 == pytest.approx(days, abs=0.006)
    assert stats.mean_gpus == pytest.approx(gpus, abs=0.0006)
    assert stats.classes[0].job_share == pytest.approx(single, abs=0.0006)
    assert stats.mean_s == pytest.approx(mean, abs=0.6)
    assert stats.percentiles_s[50] == pytest.approx(median, abs=0.6)
    assert stats.percentiles_s[95] == pytest.approx(p95, abs=0.6)
    assert stats.percentiles_s[99] == pytest.approx(p99, abs=0.6)
    assert stats.load_gpus == pytest.approx(load, rel=0.001, abs=0.06)


@pytest.mark.parametrize("name", BURSTS)
def test_arrivals(shared, found, name):
    arrivals = measure(shared, found, name).arrivals
    rate, gaps, *dispersion, peak, weekend = BURSTS[name]
    assert arrivals.rate_per_h == pytest.approx(rate, rel=0.07)
    assert arrivals.gap_cv == pytest.approx(gaps, rel=0.06)
    assert list(arrivals.dispersion.values()) == pytest.approx(dispersion, rel=0.1)
    assert arrivals.peak_to_trough == pytest.approx(peak, rel=0.02)
    assert arrivals.weekend_to_weekday == pytest.approx(weekend, rel=0.06)


def test_share_of_gpu_time_by_class(shared, found):
    shares = {c.label: c.gpu_time_share for c in measure(shared, found, "helios_venus").classes}
    expected = {"1": 0.0467, "2-4": 0.0791, "5-8": 0.2862, "9-32": 0.4249, "33+": 0.1632}
    assert shares == pytest.approx(expected, abs=0.0002)


def test_tenants_and_status(shared, found):
    tenants = measure(shared, found, "philly_sia_vc").tenants
    assert list(tenants)[:3] == ["6214e9", "11cb48", "6c71a0"]
    assert tenants["6214e9"] == pytest.approx(0.501, abs=0.001)
    theta = measure(shared, found, "thetagpu_2023").statuses
    assert theta == pytest.approx({"Failed": 0.554, "Pass": 0.244, "Killed": 0.202}, abs=0.001)


def test_the_three_forms_of_philly_agree(shared):
    rfold, vc, attempts = (
        read_trace(shared / "data/philly" / name)
        for name in ("rfold_philly_trace.csv", "sia_philly.csv", "lumos_philly_df_schedule.csv")
    )
    assert len(attempts.jobs) == 151_816
    assert attempts.origin_s == 10 * 3600 + 3 * 60 + 1  # Monday 2017-08-07 10:03:01
    week = 604_800
    all_jobs = {(round(j.arrival_s + rfold.origin_s + week), j.gpus) for j in rfold.jobs}
    some = [(round(j.arrival_s + vc.origin_s + 4 * week), j.gpus) for j in vc.jobs]
    assert all_jobs.issuperset(some)
    tried = [(round(j.arrival_s + attempts.origin_s), j.gpus) for j in attempts.jobs]
    assert sum(job in all_jobs for job in tried) / len(tried) > 0.99


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
def test_small_workloads(shared, path, jobs, gpus):
    stats = trace_stats(read_trace(shared / "data" / path).jobs)
    assert stats.jobs == jobs
    assert stats.mean_gpus == pytest.approx(gpus, abs=0.0006)
    assert stats.mean_s > 60
