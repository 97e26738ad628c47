"""What is checked of a trace's statistics, in a sample of it and in the whole."""

from __future__ import annotations

import pytest


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
