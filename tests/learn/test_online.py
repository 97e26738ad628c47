"""Learning on while a yard runs: the guard, better weights, exact repetition, kills, restarts."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import command
from learn_cases import SETTING, YARD, stream
from trainyard.errors import InputError
from trainyard.learn.background import DIED, Background
from trainyard.learn.candidate import guard, resampled
from trainyard.learn.episode import Scenario
from trainyard.learn.networks import arrays_of, load_arrays, make
from trainyard.learn.online import REFUSED, TAKEN, VERDICTS, WEIGHTS, Learning, Online
from trainyard.learn.play import logs_of
from trainyard.learn.recorded import recorded
from trainyard.learn.request import Answer
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.slot import Observation
from trainyard.policy.size.dl2.weights import Weights, load_weights, read_weights, save_weights
from trainyard.sim.clock import Simulator

pytestmark = pytest.mark.torch
SHORT = Learning(every=20, after=2, block=5, blocks=30, iterations=3)
SCENE = Scenario(YARD, (), SETTING.slot_s)


@pytest.fixture(scope="module")
def bad() -> Weights:
    """Weights of a network that was never trained."""
    torch.manual_seed(1)
    paper = load_weights("paper")
    features = paper.features()
    arrays = arrays_of(make("set", features.of_job, features.of_cluster, 3))
    return Weights(**{**paper.__dict__, "arrays": arrays, "made": {}})


def dl2_with(weights):
    policy = parse_policy("dl2")
    policy.size.weights = weights
    return policy


class Offering(Background):
    """Offers the same weights in every lesson, judged by the guard."""

    def __init__(self, weights):
        super().__init__()
        self.weights, self.lessons = weights, []

    def ask(self, lesson):
        self.lessons.append(pickle.loads(pickle.dumps(lesson)))

    def answer(self, wait):
        lesson = self.lessons[-1]
        return Answer(self.weights, {}, *guard(lesson.policy, self.weights, SCENE, lesson.judged))


def run(policy, jobs, watcher=None, seed=0):
    options = Rules(round_s=SETTING.slot_s, seed=seed)
    return Simulator(YARD, jobs, policy, options, watcher=watcher).run()


def offered(current, candidate, directory, jobs=None):
    policy = dl2_with(current)
    online = Online(policy, directory, SHORT)
    online.background = Offering(candidate)
    result = run(policy, jobs or stream(60), online)
    return online, result


def test_the_guard_refuses_worse_weights_and_nothing_changes(bad, tmp_path):
    paper = load_weights("paper")
    online, result = offered(paper, bad, tmp_path)
    assert [verdict.outcome for verdict in online.verdicts] == [REFUSED, REFUSED]
    assert all(verdict.candidate_jct > verdict.current_jct for verdict in online.verdicts)
    assert online.stage.weights is paper
    assert not (tmp_path / WEIGHTS).exists()
    np.testing.assert_array_equal(
        result.outcomes.finish_s, run(parse_policy("dl2"), stream(60)).outcomes.finish_s
    )


def test_the_guard_takes_better_weights_and_decisions_change_from_then_on(bad, tmp_path):
    paper = load_weights("paper")
    online, result = offered(bad, paper, tmp_path)
    first, second = online.verdicts
    assert first.outcome == TAKEN
    assert first.candidate_jct < first.current_jct
    assert second.current_jct == second.candidate_jct  # the same weights do not lose to themselves
    assert second.outcome == TAKEN
    np.testing.assert_array_equal(
        read_weights(tmp_path / WEIGHTS).arrays["out.bias"], paper.arrays["out.bias"]
    )
    plain = run(dl2_with(bad), stream(60))
    story, without = (
        [(change.time_s, change.job_id, change.allocation) for change in found.story]
        for found in (result, plain)
    )
    apart = next(i for i, pair in enumerate(zip(story, without, strict=False)) if pair[0] != pair[1])
    assert story[apart][0] == first.judged_s == first.asked_s + SHORT.after * SETTING.slot_s
    late = result.outcomes.arrival_s > first.judged_s
    assert result.outcomes.jct_s[late].mean() < 0.9 * plain.outcomes.jct_s[late].mean()


def test_what_judges_was_never_learnt_from(bad, tmp_path):
    online, _ = offered(bad, bad, tmp_path, stream(120))
    lessons = online.background.lessons
    assert len(lessons) > 3
    learnt = {job.job_id for lesson in lessons for block in lesson.learnt for job in block.came}
    judged = {job.job_id for lesson in lessons for block in lesson.judged for job in block.came}
    assert judged
    assert not learnt & judged


def test_decisions_are_worth_what_came_of_them(bad, tmp_path):
    online, _ = offered(bad, bad, tmp_path, stream(120))
    lesson = online.background.lessons[-1]
    found = recorded(lesson, bad.features(), SCENE)
    times = {slot.now_s: slot for slot in lesson.slots}
    assert len(found.first.actions) == len(found.rewards) + 1
    slots = sorted(times)
    first = slots.index(next(s for s in slots if s >= lesson.jobs[0].arrival_s))
    for k, reward in enumerate(found.rewards):
        began, ended = times[slots[first + k]], times[slots[first + k + 1]]
        assert reward == pytest.approx(-(ended.met - began.met) / SETTING.slot_s)
    judged = {job.arrival_s for block in lesson.judged for job in block.came}
    learnt = {job.arrival_s for block in lesson.learnt for job in block.came}
    used = {slots[first + k] for k in found.slot}
    assert used & learnt
    assert not used & (judged - learnt)


def test_recorded_probabilities_are_those_of_the_network(tmp_path):
    online, _ = offered(load_weights("paper"), load_weights("paper"), tmp_path)
    weights = load_weights("paper")
    features = weights.features()
    network = make("set", features.of_job, features.of_cluster, 3)
    load_arrays(network, weights.arrays)
    for slot in online.background.lessons[-1].slots:
        for one in slot.taken:
            logs = logs_of(network, Observation(one.jobs[None], one.cluster[None], one.mask[None]))
            assert logs[0, one.action] == pytest.approx(one.log_prob, abs=1e-4)


def test_episodes_are_put_together_of_pieces_with_their_gaps(bad, tmp_path):
    online, _ = offered(bad, bad, tmp_path)
    blocks = online.background.lessons[-1].learnt
    came = [job for block in blocks for job in block.came]
    gaps = {round(b.arrival_s - a.arrival_s, 6) for block in blocks for a, b in pairwise(block.came)}
    source = resampled(SCENE, blocks, 0)
    for number in range(20):
        jobs = source(number).jobs
        assert [job.job_id for job in jobs] == [str(i) for i in range(len(jobs))]
        assert jobs == sorted(jobs, key=lambda job: job.arrival_s)
        assert {job.model for job in jobs} <= {job.model for job in came} | {
            job.model for block in blocks for job in block.found
        }
        assert {round(b.arrival_s - a.arrival_s, 6) for a, b in pairwise(jobs)} <= gaps | {0.0}
    assert [job.arrival_s for job in source(3).jobs] == [job.arrival_s for job in source(3).jobs]


def learnt(directory, bad, seed=0):
    policy = dl2_with(bad)
    online = Online(policy, directory, SHORT)
    try:
        return online, run(policy, stream(45), online, seed)
    finally:
        online.close()


def test_the_same_seed_gives_the_same_run_and_it_goes_on_from_its_weights(bad, tmp_path):
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        online, result = learnt(tmp_path / name, bad)
        files = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        found.append((files, result.outcomes.finish_s.tolist(), str(online.verdicts)))
    assert found[0] == found[1]
    assert len(online.verdicts) == 1
    assert "lost" not in online.verdicts[0].outcome
    log = (tmp_path / "one" / VERDICTS).read_text()
    assert log.count("\n") == 2
    save_weights(tmp_path / "one" / WEIGHTS, load_weights("paper"))
    again = Online(dl2_with(bad), tmp_path / "one", SHORT)
    np.testing.assert_array_equal(
        again.stage.weights.arrays["out.bias"], load_weights("paper").arrays["out.bias"]
    )
    assert again._values is not None
    assert again._lesson == 1
    again.close()


class Sign:
    """What nothing is read from, but a file is there once it was read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)

    def wait(self, most_s=300.0):
        deadline = time.monotonic() + most_s
        while not self.path.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_killed_learner_costs_its_lesson_and_nothing_else(bad, tmp_path):
    policy = dl2_with(bad)
    save_weights(tmp_path / WEIGHTS, bad)
    kept = (tmp_path / WEIGHTS).read_bytes()
    online = Online(policy, tmp_path, SHORT)
    ask, killed, sign = online.background.ask, [], Sign(tmp_path / "came")

    def ask_and_kill(lesson):
        if killed:
            return ask(lesson)
        assert lesson.values is None
        ask(replace(lesson, values=sign, iterations=10**6))  # it would be at work for ever
        sign.wait()
        killed.append(online.background.process.pid)
        os.kill(killed[0], signal.SIGKILL)

    online.background.ask = ask_and_kill
    result = run(policy, stream(60), online)
    online.close()
    assert np.isfinite(result.outcomes.finish_s).all()
    lost, after = online.verdicts
    assert lost.outcome == f"lost: {DIED}"
    assert "lost" not in after.outcome
    assert after.taken != ((tmp_path / WEIGHTS).read_bytes() == kept)
    read_weights(tmp_path / WEIGHTS)
    assert (tmp_path / VERDICTS).read_text().count("\n") == 3
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_running_yard_does_not_wait_and_learns_what_went_wrong(bad, tmp_path):
    online, _ = offered(bad, bad, tmp_path, stream(120))
    lesson = online.background.lessons[-1]
    assert recorded(lesson, bad.features(), SCENE) is not None
    background = Background()
    background.ask(lesson)
    assert background.answer(wait=False) is None
    answer = background.answer(wait=True)
    assert isinstance(answer, Answer)
    background.ask("no lesson")
    assert background.answer(wait=True).startswith("AttributeError: ")
    background.close()
    assert background.process is None


def test_a_policy_that_does_not_learn_and_a_foreign_log_are_refused(tmp_path):
    with pytest.raises(InputError, match="policy 'srtf' does not learn; name one with dl2"):
        Online(parse_policy("srtf"), tmp_path)
    (tmp_path / VERDICTS).write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no verdicts of earlier lessons"):
        Online(parse_policy("dl2"), tmp_path)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "c.yaml").write_text("nodes:\n  - {count: 2, gpus: 4}\n")
    jobs = "job_id,arrival_s,gpus,duration_s,model,min_gpus,max_gpus\na,0,1,900,resnet50,1,4\n"
    (tmp_path / "j.csv").write_text(jobs)
    return "simulate", "--cluster", tmp_path / "c.yaml", "--jobs", tmp_path / "j.csv"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policy", "drf", "--round-s", 600), "policy 'drf' does not learn"),
        (("--policy", "dl2"), "give --round-s"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(monkeypatch, capsys, tmp_path, files, words, said):
    code, printed, error = command(monkeypatch, capsys, *files, *words, "--learn-online", tmp_path / "on")
    assert (code, printed) == (2, "")
    assert error.startswith("trainyard: error: ")
    assert error.count("\n") == 1
    assert said in error


def test_the_command_says_what_was_learnt(monkeypatch, capsys, tmp_path, files):
    words = ("--policy", "dl2(weights=philly)", "--round-s", 600, "--learn-online", tmp_path / "on")
    code, printed, error = command(monkeypatch, capsys, *files, *words)
    assert (code, error) == (0, "")
    assert f"new weights were taken 0 times, see {tmp_path / 'on'}" in printed
    assert "torch" in sys.modules
