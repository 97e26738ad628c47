"""One walk along the lines, by hand: who stops, who starts, and when more running jobs must be looked at."""

from __future__ import annotations

import pytest

from trainyard.model.job import Job
from trainyard.policy.choose.lines import EVERYBODY, _walk
from trainyard.state.record import Record

FAR = 1e9


def stand(key, seq, gpus, given=0):
    """A job in line, 100 submissions late so that no submission looks like a key."""
    record = Record(Job(f"j{seq}", 0.0, gpus, 1.0), 100 + seq, -1, (1.0, 1.0, 1.0), 0.0, 0.0)
    record.given = given
    return key, record.seq, record


def walked(waiting, late, left, pivot):
    """Names of those who stop and of those who start; None if more must be looked at."""
    lines = {}
    for one in waiting:
        lines.setdefault(one[2].gpus, []).append(one)
    heads = sorted((line[0], gpus, 0) for gpus, line in lines.items())
    found = _walk(lines, heads, late, left, pivot)
    return found and tuple([record.job_id for record in records] for records in found)


def runs(key, seq, gpus):
    return stand(key, seq, gpus, given=gpus)


def test_who_comes_first_takes_the_place_of_who_comes_last():
    assert walked([stand(1.0, 1, 2)], [runs(5.0, 0, 2)], 0, EVERYBODY) == (["j0"], ["j1"])
    assert walked([stand(6.0, 1, 2)], [runs(5.0, 0, 2)], 0, EVERYBODY) == ([], [])
    assert walked([stand(5.0, 1, 2)], [runs(5.0, 0, 2)], 0, EVERYBODY) == ([], [])  # came later
    assert walked([stand(5.0, 0, 2)], [runs(5.0, 1, 2)], 0, EVERYBODY) == (["j1"], ["j0"])


def test_what_is_free_counts_and_whoever_still_fits_keeps_running():
    late = [runs(5.0, 0, 1), runs(6.0, 1, 2), runs(7.0, 2, 1)]
    assert walked([stand(1.0, 3, 2)], late, 2, EVERYBODY) == ([], ["j3"])
    assert walked([stand(1.0, 3, 2)], late, 1, EVERYBODY) == (["j2"], ["j3"])
    assert walked([stand(1.0, 3, 2)], late, 0, EVERYBODY) == (["j1"], ["j3"])


def test_a_line_goes_home_with_its_first_and_moves_on_with_each_that_starts():
    waiting = [stand(1.0, 1, 3), stand(2.0, 2, 1), stand(3.0, 3, 3), stand(4.0, 4, 1), stand(9.0, 5, 1)]
    assert walked(waiting, [], 2, EVERYBODY) == ([], ["j2", "j4"])
    assert walked(waiting, [], 3, EVERYBODY) == ([], ["j1"])
    assert walked(waiting, [], 9, EVERYBODY) == ([], ["j1", "j2", "j3", "j4", "j5"])


@pytest.mark.parametrize(("pivot", "found"), [(0.9, ([], [])), (1.0, None), (FAR, None)])
def test_who_does_not_fit_but_comes_before_the_pivot_may_stop_others(pivot, found):
    """Among the running ones in question, behind them, and when nothing is left at all."""
    behind = walked([stand(1.0, 1, 2)], [], 1, pivot)
    among = walked([stand(1.0, 1, 4)], [runs(5.0, 0, 2)], 1, pivot)
    full = walked([stand(1.0, 1, 2)], [], 0, pivot)
    assert (behind, among, full) == (found, found, found)


def test_who_fits_need_not_come_after_the_pivot():
    assert walked([stand(1.0, 1, 2)], [], 2, FAR) == ([], ["j1"])
    assert walked([stand(1.0, 1, 2)], [runs(5.0, 0, 2)], 0, 3.0) == (["j0"], ["j1"])
