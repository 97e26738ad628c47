"""How many decisions the learning environment takes in: `make bench` (docs/performance.md).

Random legal actions in a batch of episodes of the DL2 paper's setting, the core included. User CPU of the
environment alone, without choosing actions; the best of ten stretches, and the average of them. Where PyTorch
is installed, also with a trained network that draws the actions, its time included.

Then how long the policy takes for a whole slot among 500 jobs, and for one pass of its network.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from itertools import product

import numpy as np

from trainyard.garbage import no_collection
from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Scenario
from trainyard.learn.settings.paper_jobs import SETTINGS, Setting, dl2_cluster, dl2_trace
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.size.dl2.arrays import ACTIONS
from trainyard.policy.size.dl2.slot import Slots
from trainyard.policy.size.dl2.stage import decide
from trainyard.policy.size.dl2.weights import load_weights
from trainyard.sim.clock import Simulator

LIMIT = 20_000  # decisions per CPU second
THEIRS = 800  # of the public code, with its network; quoted
BATCH = 32
JOBS, SLOT_LIMIT_MS = 500, 100.0
STRETCHES = 10
# Judged are the settings that policies are trained for; in the smallest a slot is over after few decisions.
JUDGED = {"testbed": False, "s16e3k": True, "n48e4k": True, "large": True}


def environment(name: str) -> BatchEnv:
    """A batch of episodes of one setting."""
    setting = SETTINGS[name]
    cluster = dl2_cluster(setting.nodes)
    speed = SpeedModel(cluster)

    def scenario(number: int) -> Scenario:
        return Scenario(cluster, dl2_trace(setting, np.random.RandomState(number)), setting.slot_s, speed)

    return BatchEnv(scenario, BATCH)


def measure(name: str, decisions: int) -> tuple[float, float, float]:
    """Return decisions per CPU second, at best and on average, and decisions per slot."""
    env, draw = environment(name), np.random.default_rng(0)
    seen, slots, spent = env.reset(), 0, np.zeros(STRETCHES)
    steps = decisions // (STRETCHES * BATCH)
    for stretch, _ in product(range(STRETCHES), range(steps)):
        score = draw.random(seen.mask.shape) * seen.mask
        score[:, 0] = 1e-9  # stop only when nothing else is legal
        actions = score.argmax(axis=1)
        began = time.process_time()
        seen, step = env.step(actions)
        spent[stretch] += time.process_time() - began
        slots += int(step.slot_end.sum())
    taken = steps * BATCH
    return taken / spent.min(), STRETCHES * taken / spent.sum(), STRETCHES * taken / max(slots, 1)


def with_network(name: str, decisions: int) -> float:
    """Return decisions per CPU second with the network that comes with the package; NaN without PyTorch."""
    if find_spec("torch") is None:
        return float("nan")
    import torch

    from trainyard.learn.networks import load_arrays, make
    from trainyard.learn.play import logs_of, sampled

    torch.set_num_threads(1)
    env, draw, weights = environment(name), np.random.default_rng(0), load_weights("paper")
    policy = make("set", env.slots.features.of_job, env.slots.features.of_cluster, ACTIONS)
    load_arrays(policy, weights.arrays)
    seen, steps = env.reset(), decisions // (5 * BATCH)
    began = time.process_time()
    for _ in range(steps):
        seen, _ = env.step(sampled(logs_of(policy, seen), draw))
    return steps * BATCH / (time.process_time() - began)


def whole_slot(jobs: int, repeat: int = 5) -> tuple[float, int, float, float]:
    """Return ms for a slot of so many jobs, passes of the network, ms of each, and ms for the whole plan."""
    setting = Setting(jobs, jobs, 10, 30_000)
    work = [replace(job, arrival_s=0.0) for job in dl2_trace(setting, np.random.RandomState(0))]
    policy = parse_policy("dl2")
    simulator = Simulator(dl2_cluster(jobs), work, policy, Rules(round_s=setting.slot_s))
    simulator.advance()
    snapshot, weights, ranked = simulator.yard.snapshot(0.0), load_weights("paper"), np.arange(jobs)
    slots, times, asked = Slots(1, weights.features()), [], 0
    for _ in range(repeat):
        began = time.process_time()
        slots.open(0, snapshot, ranked, setting.slot_s)
        asked = decide(slots, weights, np.random.default_rng(0))
        between = time.process_time()
        policy.decide(snapshot)
        times.append((between - began, time.process_time() - between))
    slot_s, plan_s = np.array(times).min(axis=0).tolist()
    return 1e3 * slot_s, asked, 1e3 * slot_s / max(asked, 1), 1e3 * plan_s


def main() -> int:
    """Measure, print, and say by the exit code whether the limit is kept."""
    parser = argparse.ArgumentParser(description="Time the learning environment.")
    parser.add_argument("--decisions", type=int, default=100_000, help="in each setting")
    args = parser.parse_args()
    print(f"Environment for learning: decisions per CPU second, {BATCH} episodes at once")
    numbers = f"{'nodes':>6}{'per slot':>10}{'average':>10}{'best':>10}{'limit':>9}"
    print(f"{'setting':<10}{numbers}  ok?  x public code (~{THEIRS}/s)  with network")
    kept = True
    for name, judged in JUDGED.items():
        with no_collection():
            best, average, per_slot = measure(name, args.decisions)
        ok = best >= LIMIT or not judged
        kept &= ok
        limit = f"{LIMIT:,}" if judged else "-"
        numbers = f"{SETTINGS[name].nodes:>6}{per_slot:>10.1f}{average:>10,.0f}{best:>10,.0f}{limit:>9}"
        both = with_network(name, args.decisions)
        print(
            f"{name:<10}{numbers}  {'yes' if ok else 'NO':<5}{best / THEIRS:>5.0f}{both:>14,.0f}", flush=True
        )
    slot_ms, asked, pass_ms, plan_ms = whole_slot(JOBS)
    kept &= slot_ms <= SLOT_LIMIT_MS
    passes = f"in {asked} passes of {pass_ms:.2f} ms (limit {SLOT_LIMIT_MS:.0f})"
    print(f"A slot of {JOBS} jobs: {slot_ms:.0f} ms {passes}; the whole plan {plan_ms:.0f} ms")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
