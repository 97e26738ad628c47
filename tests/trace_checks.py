"""What is checked of a trace's statistics, in a sample of it and in the whole."""

from __future__ import annotations

import pytest

from trainyard.trace.stats import trace_stats


def check_sizes(stats, expected, load_gpus=0.0):
    """Expected: jobs, days, mean GPUs, share of 1-GPU jobs, mean s, median s, p95 s, p99 s, load in GPUs.

    `load_gpus` is how far the load may be off because few digits of it are known.
    """
    jobs, days, gpus, single, mean, median, p95, p99, load = expected
    assert stats.jobs == jobs
    assert stats.span_s / 86400 == pytest.approx(days, abs=0.006)
    assert stats.mean_gpus == pytest.approx(gpus, abs=0.0006)
    assert stats.classes[0].job_share == pytest.approx(single, abs=0.0006)
    assert stats.mean_s == pytest.approx(mean, abs=0.6)
    assert stats.percentiles_s[50] == pytest.approx(median, abs=0.6)
    assert stats.percentiles_s[95] == pytest.approx(p95, abs=0.6)
    assert stats.percentiles_s[99] == pytest.approx(p99, abs=0.6)
    assert stats.load_gpus == pytest.approx(load, rel=0.001, abs=load_gpus)


def gpu_time_shares(stats):
    return {c.label: c.gpu_time_share for c in stats.classes}


def seconds_and_gpus(trace, first_s):
    """Arrivals, when the first one came at `first_s`, each with its GPUs."""
    return [(round(job.arrival_s + first_s), job.gpus) for job in trace.jobs]


def check_forms_of_philly(rfold, rfold_first_s, vc, vc_first_s, attempts):
    """The three public forms of the Philly trace tell of the same jobs."""
    assert attempts.origin_s == 10 * 3600 + 3 * 60 + 1  # Monday 2017-08-07 10:03:01
    all_jobs = set(seconds_and_gpus(rfold, rfold_first_s))
    assert all_jobs.issuperset(seconds_and_gpus(vc, vc_first_s))
    tried = seconds_and_gpus(attempts, attempts.origin_s)
    assert sum(job in all_jobs for job in tried) / len(tried) > 0.99


def check_small(trace, jobs, gpus):
    """A workload of few jobs: how many, how large, and that they take minutes."""
    stats = trace_stats(trace.jobs)
    assert stats.jobs == jobs
    assert stats.mean_gpus == pytest.approx(gpus, abs=0.0006)
    assert stats.mean_s > 60
