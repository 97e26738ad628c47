"""Recent history of a running yard: what is kept, how much of it, and what is corrected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from learn_cases import SETTING, YARD, stream
from trainyard.core.events import JobCancelled, JobStopped
from trainyard.learn import history
from trainyard.learn.history import History
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.sim.clock import Simulator


class Noting:
    """Keeps history, and what was true at each decision."""

    def __init__(self, policy, block=5, blocks=4):
        self.history, self.stage = History(block, blocks), policy.size
        self.stage.taken = []
        self.seen, self.left = [], {}

    def deciding(self, snapshot):
        taken, self.stage.taken = self.stage.taken, []
        self.history.see(snapshot, taken)
        self.seen.append((len(self.history.jobs), sum(map(history._size, self.history.slots))))
        parts = snapshot.remaining_samples() / snapshot.table.column(history.Column.TOTAL)
        self.left[snapshot.now_s] = {
            job.job_id: part for job, part in zip(snapshot.table.jobs, parts, strict=True)
        }

    def ended(self, end):
        self.history.ended(end)


def watched(jobs, **size):
    policy = parse_policy("dl2")
    noting = Noting(policy, **size)
    options = Rules(round_s=SETTING.slot_s)
    simulator = Simulator(YARD, jobs, policy, options, watcher=noting)
    simulator.run()
    return noting


def test_so_much_is_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(history, "MOST_NUMBERS", 20_000)
    jobs = stream(60)
    noting = watched(jobs)
    kept = noting.history
    assert max(count for count, _ in noting.seen) == 20
    assert 15_000 < max(numbers for _, numbers in noting.seen) <= 20_000
    assert list(kept.jobs) == jobs[-20:]
    assert kept.came == 60
    assert len(kept._number) == 20
    assert len(kept._found) <= 5


def test_blocks_keep_their_numbers():
    jobs = stream(43)
    kept = watched(jobs).history
    blocks = kept.blocks()
    assert list(blocks) == [5, 6, 7]  # 23 to 42 are kept; 40 to 42 are no whole block
    for number, block in blocks.items():
        assert list(block.came) == jobs[5 * number : 5 * number + 5]


def test_a_block_begins_with_what_was_left_of_earlier_jobs():
    jobs = stream(40)
    noting = watched(jobs, blocks=8)
    by_id = {job.job_id: job for job in jobs}
    some = 0
    for block in noting.history.blocks().values():
        start_s = block.came[0].arrival_s
        left = noting.left[start_s]
        earlier = [
            i for i, part in left.items() if part > 1e-6 and by_id[i].arrival_s < start_s
        ]  # all come at the beginning of a slot
        found = {job.job_id: job for job in block.found}
        assert set(earlier) <= set(found)
        for i in earlier:
            assert found[i].samples == pytest.approx(by_id[i].samples * left[i])
            assert found[i].arrival_s == start_s
        some += len(earlier)
    assert some > 10


def test_a_job_that_ends_early_is_as_short_as_it_was():
    policy, jobs = parse_policy("dl2"), stream(6)
    noting = Noting(policy)
    simulator = Simulator(YARD, jobs, policy, Rules(round_s=300.0), watcher=noting)
    part = {}
    while not any(0.1 < left < 0.9 for left in part.values()):
        assert simulator.advance()
        simulator.decide()
        part = noting.left[simulator.now_s]
    job_id = next(i for i, left in part.items() if 0.1 < left < 0.9)
    simulator.yard.handle(JobCancelled(simulator.now_s, job_id))
    end, *_ = simulator.yard.handle(JobStopped(simulator.now_s, job_id))
    before = list(noting.history.jobs)
    noting.ended(end)
    for job, was in zip(noting.history.jobs, before, strict=True):
        done = 1 - part[job_id] if job.job_id == job_id else 1.0
        assert job == replace(was, samples=pytest.approx(done * was.samples))


def test_watching_changes_no_decision():
    jobs = stream(20)
    policy = parse_policy("dl2")
    plain = Simulator(YARD, jobs, policy, Rules(round_s=300.0)).run()
    noting = Noting(policy)
    seen = Simulator(YARD, jobs, policy, Rules(round_s=300.0), watcher=noting).run()
    np.testing.assert_array_equal(plain.outcomes.finish_s, seen.outcomes.finish_s)
    taken = [one for slot in noting.history.slots for one in slot.taken]
    assert all(one.mask[one.action] and one.log_prob < 1e-9 for one in taken)
    assert len({one.action for one in taken}) > 10
