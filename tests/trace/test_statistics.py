"""Samples of the public traces have the statistics that were computed from them by other means.

`make test-traces` asks the same of the whole traces (tests/full_traces.py).
"""

from __future__ import annotations

from functools import cache

import pytest

from cases import TRACES
from trace_checks import check_forms_of_philly, check_sizes, check_small, gpu_time_shares
from trainyard.trace.detect import read_trace
from trainyard.trace.stats import trace_stats

FORMATS = {
    "philly_rfold": "rfold",
    "philly_vc": "philly-vc",
    "helios_venus": "helios",
    "pai_tasks": "pai",
    "thetagpu_made_up": "thetagpu",
    "openb_made_up": "openb",
}
MEASURED = {
    "philly_rfold": (302, 128.413, 1.9106, 0.8444, 49_297.4, 1_562.5, 137_082.4, 1_440_351.4, 3.9505),
    "philly_vc": (211, 94.292, 1.4597, 0.9194, 14_694.0, 1_466.0, 34_750.5, 185_834.4, 0.6435),
    "helios_venus": (442, 193.682, 6.5882, 0.6584, 6_095.2, 184.0, 29_839.7, 172_800.0, 1.7075),
    "pai_tasks": (134, 61.926, 3.9478, 0.7761, 3_276.3, 539.0, 17_643.8, 30_475.2, 0.4958),
    "thetagpu_made_up": (89, 17.488, 3.0112, 0.4494, 2_676.9, 2_140.8, 7_085.8, 11_779.7, 0.4563),
    "openb_made_up": (70, 6.710, 1.8, 0.8, 3_322.2, 2_521.0, 8_692.9, 12_173.8, 0.6852),
}
# jobs/h, variation of gaps, dispersion in 10 min, 1 h and 24 h, peak/trough hour, weekend/weekday
BURSTS = {
    "philly_rfold": (0.0980, 4.8205, 1.3625, 1.5601, 4.0353, 4.1250, None),
    "philly_vc": (0.0932, 2.2349, 1.2512, 1.5072, 2.9680, 4.0556, 0.5143),
    "helios_venus": (0.0951, 2.0762, 37.3651, 37.4085, 37.7384, 20.6000, None),
    "pai_tasks": (0.0902, 1.0030, 1.0903, 1.0759, 0.9876, 2.2308, None),
    "thetagpu_made_up": (0.2121, 0.9422, 1.0105, 1.0854, 1.0824, 2.1000, 1.0317),
    "openb_made_up": (0.4347, 1.1049, 1.0445, 1.0062, 1.4891, 4.0000, None),
}


@cache
def measure(name):
    trace = read_trace(TRACES / f"{name}.csv")
    assert trace.format == FORMATS[name]
    return trace_stats(trace.jobs, trace.origin_s)


@pytest.mark.parametrize("name", MEASURED)
def test_sizes_and_run_times(name):
    check_sizes(measure(name), MEASURED[name])


@pytest.mark.parametrize("name", BURSTS)
def test_arrivals(name):
    found = measure(name).arrivals
    rate, gaps, *dispersion, peak, weekend = BURSTS[name]
    assert found.rate_per_h == pytest.approx(rate, abs=1e-4)
    assert found.gap_cv == pytest.approx(gaps, abs=1e-4)
    assert list(found.dispersion.values()) == pytest.approx(dispersion, abs=1e-4)
    assert found.peak_to_trough == pytest.approx(peak, abs=1e-4)
    assert found.weekend_to_weekday == (None if weekend is None else pytest.approx(weekend, abs=1e-4))


def test_share_of_gpu_time_by_class():
    expected = {"1": 0.0245, "2-4": 0.0585, "5-8": 0.1970, "9-32": 0.6192, "33+": 0.1008}
    assert gpu_time_shares(measure("helios_venus")) == pytest.approx(expected, abs=1e-4)


def test_tenants_and_status():
    tenants = measure("philly_vc").tenants
    assert list(tenants)[:3] == ["6214e9", "6c71a0", "11cb48"]
    assert tenants["6214e9"] == pytest.approx(107 / 211)
    theta = measure("thetagpu_made_up").statuses
    assert theta == pytest.approx({"Pass": 44 / 89, "Killed": 26 / 89, "Failed": 19 / 89})


def test_the_three_forms_of_philly_agree():
    """The samples hold all jobs of the same seconds, and the first one of all."""
    rfold, vc, attempts = (read_trace(TRACES / f"philly_{name}.csv") for name in ("rfold", "vc", "attempts"))
    assert len(attempts.jobs) == 415
    week = 604_800
    first = week + 23 * 3600 + 27 * 60  # Monday 2017-08-14 23:27:00
    check_forms_of_philly(rfold, first, vc, vc.origin_s + 6 * week, attempts)


@pytest.mark.parametrize(
    ("name", "jobs", "gpus"),
    [
        ("tiresias_60.csv", 60, 2.8333),
        ("gavel_fairness.trace", 24, 2.0417),
        ("gavel_makespan.trace", 25, 1.6),
        ("sia_philly.csv", 80, 9.625),
        ("sia_saturn.csv", 80, 9.475),
    ],
)
def test_small_workloads(name, jobs, gpus):
    check_small(read_trace(TRACES / name), jobs, gpus)
