"""What is believed of a job's length: exact cases by hand."""

from __future__ import annotations

import pytest

from trainyard.model.estimate import from_totals, heavy_tail, told


def test_what_was_told_has_no_range():
    assert told(120.0) == (120.0, 120.0, 120.0, "told")


def test_with_nothing_known_an_hour_is_guessed():
    mean, p10, p90, source = heavy_tail(0.0)
    assert (mean, source) == (3600.0, "guess")
    # Pareto with exponent 2 from 1800 s on: P(total > t) = (1800 / t)**2.
    assert (1800.0 / p10) ** 2 == pytest.approx(0.9)
    assert (1800.0 / p90) ** 2 == pytest.approx(0.1)


def test_beyond_all_known_a_job_needs_as_much_again():
    assert heavy_tail(1800.0).mean == 3600.0
    assert heavy_tail(5000.0).mean == 10_000.0
    assert heavy_tail(5000.0).p10 > 5000.0


def test_means_and_quantiles_of_totals():
    assert from_totals([10.0, 20.0, 60.0]) == (30.0, pytest.approx(12.0), pytest.approx(52.0), "history")
    assert from_totals([7.0]) == (7.0, 7.0, 7.0, "history")
    assert from_totals([float(i) for i in range(11)]) == (
        5.0,
        pytest.approx(1.0),
        pytest.approx(9.0),
        "history",
    )
