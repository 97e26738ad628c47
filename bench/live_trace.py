"""A trace through the real controller, beside the simulator: `make live-trace` (docs/performance.md).

The controller writes every event to its store, carries out by the simulated backend what it decides, and
sees what ends; its clock is set, so that a month takes minutes. The schedule in the store has to be that of
the simulator: every start and every change of shares at the same time with the same shares, every end at the
same time, to the last bit. CPU is user time; the ratio is to the plain simulator with the same policy.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from trace_cases import HALVES, World, differences, mixed_jobs, simulated
from trainyard.live.deciding import Decider
from trainyard.live.recovery import check_log
from trainyard.live.store.opening import connect
from trainyard.live.store.reading import last_seq
from trainyard.model.cluster import uniform_cluster
from trainyard.model.rules import Rules
from trainyard.trace.generate import DEFAULT_MIX, poisson

LOAD = 0.9
NODES, GPUS_EACH = 16, 8
POLICIES = "fifo,srtf,las,srtf+doubling,srtf+tune"


def main() -> int:
    """Play the trace by every policy; 1 if a schedule differs."""
    asked = _arguments()
    wrong = 0
    print(f"{asked.jobs:,} {asked.trace} jobs, seed {asked.seed}; user CPU s")
    print(
        f"{'policy':<22}{'simulator':>10}{'controller':>11}{'ratio':>8}{'events':>10}{'replay':>8}  schedule"
    )
    for policy in asked.policy.split(","):
        wrong += _one(asked, policy)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--policy", default=POLICIES, help="one or more, with commas between them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", choices=("poisson", "mixed"), default="poisson")
    parser.add_argument("--restart-s", type=float, default=30.0)
    parser.add_argument("--round-s", type=float)
    parser.add_argument("--unknown-durations", action="store_true")
    parser.add_argument("--replay", action="store_true", help="replay the log too, decisions included")
    return parser.parse_args()


def _one(asked: argparse.Namespace, policy: str) -> bool:
    """Play the trace by one policy; whether the schedule differs."""
    rules = Rules(asked.round_s, asked.restart_s, 5.0, unknown_durations=asked.unknown_durations)
    with tempfile.TemporaryDirectory(prefix="live-trace-") as folder:
        world = _world(asked, f"sqlite:///{folder}/store", policy, rules)
        began = os.times().user
        theirs = simulated(world)
        simulator_s, began = os.times().user - began, os.times().user
        world.live()
        live_s, began = os.times().user - began, os.times().user
        events = _events(world.url, asked.replay)
        replay_s = os.times().user - began if asked.replay else 0.0
        found = differences(world.schedule(), theirs)
    ratio = live_s / max(simulator_s, 1e-3)
    said = "the same" if not found else f"{len(found)} jobs differ"
    numbers = f"{simulator_s:>10.2f}{live_s:>11.1f}{ratio:>7.0f}x{events:>10,}{replay_s:>8.1f}"
    print(f"{policy:<22}{numbers}  {said}", flush=True)
    for text in found[:3]:
        print(f"  {text}")
    return bool(found)


def _world(asked: argparse.Namespace, url: str, policy: str, rules: Rules) -> World:
    if asked.trace == "mixed":
        return World(url, HALVES, mixed_jobs(asked.jobs, asked.seed, 900.0), policy, rules)
    gpus_each = sum(int(gpus) * share for gpus, share in DEFAULT_MIX.items()) / sum(DEFAULT_MIX.values())
    jobs = poisson(asked.jobs, asked.seed, LOAD * NODES * GPUS_EACH / gpus_each)
    return World(url, uniform_cluster(NODES, GPUS_EACH), jobs, policy, rules)


def _events(url: str, replay: bool) -> int:
    """Return the length of the log; replayed, if that is asked for."""
    engine = connect(url)
    try:
        with engine.connect() as connection:
            return check_log(connection, Decider()) if replay else last_seq(connection)
    finally:
        engine.dispose()


if __name__ == "__main__":
    sys.exit(main())
