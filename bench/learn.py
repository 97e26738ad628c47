"""How many decisions the learning environment takes in: `make bench` (docs/performance.md).

Random legal actions in a batch of episodes of the DL2 paper's setting, the engine included, no network. User
CPU of the environment alone, without choosing actions; the best of ten stretches, and the average of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product

import numpy as np

from trainyard.learn.batch import BatchEnv
from trainyard.learn.episode import Scenario
from trainyard.model.speed import SpeedModel
from trainyard.quiet import no_collection
from trainyard.reproduce.dl2_workload import SETTINGS, dl2_cluster, dl2_trace

LIMIT = 20_000  # decisions per CPU second
THEIRS = 800  # of the public code, with its network; quoted
BATCH = 32
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


def main() -> int:
    """Measure, print, and say by the exit code whether the limit is kept."""
    parser = argparse.ArgumentParser(description="Time the learning environment.")
    parser.add_argument("--decisions", type=int, default=100_000, help="in each setting")
    args = parser.parse_args()
    print(f"Environment for learning: decisions per CPU second, {BATCH} episodes at once, no network")
    numbers = f"{'nodes':>6}{'per slot':>10}{'average':>10}{'best':>10}{'limit':>9}"
    print(f"{'setting':<10}{numbers}  ok?  x public code (~{THEIRS}/s with its network)")
    kept = True
    for name, judged in JUDGED.items():
        with no_collection():
            best, average, per_slot = measure(name, args.decisions)
        ok = best >= LIMIT or not judged
        kept &= ok
        limit = f"{LIMIT:,}" if judged else "-"
        numbers = f"{SETTINGS[name].nodes:>6}{per_slot:>10.1f}{average:>10,.0f}{best:>10,.0f}{limit:>9}"
        print(f"{name:<10}{numbers}  {'yes' if ok else 'NO':<5}{best / THEIRS:>5.0f}", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
