"""Agreement with the public DL2 simulator (docs/agreement.md)."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from cases import case
from conftest import checked
from dl2_cases import traces
from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import KINDS, dl2_cluster, validation_traces
from trainyard.policy.place.spread import Spread
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.matrix import Raw
from trainyard.policy.size.dl2.slot import STOP
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.reproduce.dl2.rules import ONE_WORKER, AllTheyCanHave, bound_slots, policy_of
from trainyard.reproduce.dl2.theirs import AVERAGE_JCT, BOUND
from trainyard.state.beliefs import Told

ROLLOUTS = case("dl2/rollouts")
NAMES = ["testbed", "s16e3k"]


class OneNodeTried(Size):
    """Their allocator: only the node that is used least is tried, and the first failure ends the slot."""

    def shapes(self, snapshot, ranked):
        self.jobs = [snapshot.table.jobs[row] for row in ranked]
        self.left = snapshot.remaining_samples()[ranked]
        self.speeds = [Told(snapshot).surface(row) for row in ranked.tolist()]
        self.size = [(0, 0)] * len(ranked)
        used = np.zeros((len(snapshot.nodes.ids), 2))
        queue = [(*self.key(i), i) for i in range(len(ranked))]
        heapq.heapify(queue)
        while queue:
            key, workers, servers, i = heapq.heappop(queue)
            node = used.sum(axis=1).argmin()
            used[node] += self.jobs[i].need(workers, servers)
            if key >= self.enough or used[node].max() > 8:
                break
            self.size[i] = (self.size[i][0] + workers, self.size[i][1] + servers)
            if max(self.size[i]) < self.jobs[i].most_gpus:
                heapq.heappush(queue, (*self.key(i), i))
        sizes = np.array(self.size, dtype=np.int64).reshape(-1, 2)
        sizes[sizes.min(axis=1) == 0] = 0  # one without the other cannot run
        return Chosen(Shapes(sizes[:, 0], sizes[:, 1]))


class TheirDrf(OneNodeTried):
    enough = np.inf

    def key(self, i):
        """One pair to the smallest dominant share; a pair's is the same for all kinds of jobs."""
        return self.size[i][0], 1, 1


class TheirOptimus(OneNodeTried):
    enough = 0.0

    def key(self, i):
        """The one task that saves most time, ties to the server; not divided by what it takes."""
        (w, p), speeds = self.size[i], self.speeds[i]
        if w == 0 or p == 0:
            return (-np.inf, 1, 0) if w == 0 else (-np.inf, 0, 1)
        with np.errstate(divide="ignore"):
            now, worker, server = self.left[i] / np.array([speeds[w, p], speeds[w + 1, p], speeds[w, p + 1]])
        return (server - now, 0, 1) if server <= worker else (worker - now, 1, 0)


OURS = {
    "DRF": "drf",
    "Optimus": "optimus(hysteresis=false)",
    "FIFO": Policy("all", size=AllTheyCanHave()),
}
THEIRS = {"DRF": TheirDrf(), "Optimus": TheirOptimus(), "FIFO": AllTheyCanHave()}


def jct_slots(setting, jobs, policy):
    """Completion times in order of submission."""
    result = checked(dl2_cluster(setting.nodes), jobs, policy, round_s=setting.slot_s)
    return result.outcomes.jct_s / setting.slot_s


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheduler", OURS)
def test_average_jct_within_a_tenth(name, scheduler):
    setting, cases = traces(name)
    ours = np.mean([jct_slots(setting, jobs, OURS[scheduler]) for jobs, _ in cases])
    theirs = np.mean([results[scheduler]["avg_jct_slots"] for _, results in cases])
    assert 0.9 * theirs < ours < 1.0001 * theirs


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheduler", THEIRS)
def test_with_their_allocator_every_job_agrees(name, scheduler):
    setting, cases = traces(name)
    for jobs, results in cases:
        ours = jct_slots(setting, jobs, Policy(scheduler, size=THEIRS[scheduler], place=Spread()))
        np.testing.assert_allclose(ours, results[scheduler]["jct"], atol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_draws_their_traces(name):
    setting, cases = traces(name)
    for (jobs, _), drawn in zip(cases, validation_traces(setting, len(cases)), strict=True):
        assert [(j.model, j.arrival_s, j.samples) for j in drawn] == [
            (j.model, j.arrival_s, j.samples) for j in jobs
        ]


def test_controls_agree_on_the_testbed():
    """The rules that were added to their simulator, with its measured speeds; ours finds room on any node."""
    setting, cases = traces("testbed")
    theirs = AVERAGE_JCT["testbed"]
    cluster = dl2_cluster(setting.nodes)
    bound = np.mean([bound_slots(Scenario(cluster, jobs, setting.slot_s)) for jobs, _ in cases])
    assert bound == pytest.approx(theirs[BOUND], abs=6e-4)
    for rule, nearly in (("1:1 only", 1e-3), (ONE_WORKER, 0.05)):
        ours = np.mean([jct_slots(setting, jobs, policy_of(rule)) for jobs, _ in cases])
        assert ours == pytest.approx(theirs[rule], rel=nearly)


def episode(trace_index):
    setting, cases = traces("testbed")
    cluster, jobs = dl2_cluster(setting.nodes), cases[trace_index][0]
    features = Raw(tuple(kind.model for kind in KINDS))
    return BatchEnv(lambda _: Scenario(cluster, jobs, setting.slot_s), 1, features=features, episodes=1)


@pytest.mark.parametrize("rollout", ROLLOUTS, ids=lambda r: f"{r['policy']}-{r['trace_index']}")
def test_scripted_rollouts(rollout):
    """States, legal actions and rewards of the first slots, as many as were written down."""
    env = episode(rollout["trace_index"])
    seen, ended, reward = env.reset(), False, 0.0
    for told in rollout["steps"]:
        if not ended:  # a slot of ours ends as soon as nothing fits, theirs with the first that does not
            compare(env, seen, told)
            action = STOP if told["moved"] else told["executed"] + 1
            seen, step = env.step(np.array([action]))
            ended, reward = bool(step.slot_end[0]), float(step.progress[0])
        if told["moved"]:
            assert ended
            assert reward == pytest.approx(told["reward"], abs=2e-6)
            ended = False


@pytest.mark.parametrize("rollout", ROLLOUTS[2::3], ids=lambda r: f"trace {r['trace_index']}")
def test_one_worker_and_one_server_for_everybody(rollout):
    env = episode(rollout["trace_index"])
    env.reset()
    while not env.idle:
        env.step(np.array([STOP]))
    outcome = env.outcomes[0]
    assert outcome.decisions == rollout["decisions"]
    assert outcome.avg_jct == pytest.approx(rollout["avg_jct_slots"], abs=1e-5)
    assert outcome.makespan == pytest.approx(rollout["makespan_slots"], abs=1e-5)


def compare(env, seen, told):
    """The same jobs in the same state; what they call legal and we do not is what has no room."""
    count = int(env.slots.count[0])
    np.testing.assert_allclose(seen.jobs[0, :count], told["state"], atol=2e-6)
    assert not seen.jobs[0, count:].any()
    legal = set(np.flatnonzero(seen.mask[0][1:]).tolist())
    theirs = set(told["legal"])
    assert legal <= theirs
    parts = env.slots.jobs.needs[0].reshape(-1, 3)
    for action in theirs - legal:
        assert (parts[action] > env.slots.room[0]).any()
