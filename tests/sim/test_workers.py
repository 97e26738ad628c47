"""Worker processes: they answer, and when the work fails they end with it."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import active_children

import pytest

from trainyard.sim.workers import Workers


def twice(number):
    return 2 * number


def sees_ctrl_c(_):
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def for_ever(_):
    while True:
        time.sleep(1000)


def test_workers_answer_and_do_not_see_ctrl_c():
    with Workers(2) as pool:
        assert [future.result() for future in [pool.submit(twice, n) for n in range(5)]] == [0, 2, 4, 6, 8]
        assert not pool.submit(sees_ctrl_c, 0).result()
    assert sees_ctrl_c(0)  # as before


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError])
def test_workers_end_when_the_work_fails(failure):
    before = set(active_children())

    def fails():
        with Workers(2) as pool:
            for number in range(4):
                pool.submit(for_ever, number)
            assert len(set(active_children()) - before) == 2
            raise failure

    with pytest.raises(failure):
        fails()
    assert set(active_children()) == before


def test_ctrl_c_in_the_moment_of_a_start_comes_after_it(monkeypatch):
    """It is put off, not lost."""

    def interrupted(*_args, **_more):
        os.kill(os.getpid(), signal.SIGINT)
        return "handed in"

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", interrupted)
    with pytest.raises(KeyboardInterrupt), Workers(1) as pool:
        pool.submit(twice, 1)
