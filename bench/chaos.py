"""A long life of the core in a real cluster, one after the other, over all policies: `make chaos`.

Jobs, kills, failures, drains, reservations, changes of policy; late, lost, doubled and unknown events, at
random from a seed. After every event the books are worked out anew and compared. In the end the log is
replayed: state and answers must be the same, to the last byte. Now and then a fork, and a yard that was
written down and read again, have to decide the same. The exit code is 1 if anything differs; what is printed
repeats it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from chaos_cases import KINDS, ONE, TWO, Chaos
from trainyard.core.events import DecisionDue
from trainyard.core.twins import state_of
from trainyard.errors import TrainyardError
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import ENTRIES

STEPS = 500  # of one life
LOOKS = 125  # steps between two looks at twins
ALSO = (
    "srtf+tune",
    "srtf+market+tune",
    "las+doubling+tune",
    "srtf+smd",
    "srtf+dl2",
    "fifo(fill=greedy)+optimus+random+greedy",
)


def policies() -> list[str]:
    """Return every stage that can be named alone, and some combinations."""
    named = []
    for name in (*ENTRIES, *ALSO):
        try:
            parse_policy(name)
        except TrainyardError:
            continue
        named.append(name)
    return named


def live(policy: str, seed: int, steps: int) -> Chaos:
    """Lead one life; whatever is wrong raises."""
    draw = Random(seed)
    stalls = draw.choice(((0.0, 0.0), (2.0, 30.0), (0.0, 5.0)))
    chaos = Chaos(policy, draw.choice((ONE, TWO)), stalls, draw.random() < 0.5)
    for k in range(steps):
        chaos.step(draw.choice(KINDS), draw.randrange(1000))
        if k % LOOKS == 0:
            look_at_twins(chaos)
    if chaos.refused:
        raise AssertionError(f"a plan was refused: {chaos.refused[0]}")
    if chaos.replayed() != (chaos.look(), chaos.answers):
        raise AssertionError("the replay of the log differs")
    return chaos


def look_at_twins(chaos: Chaos) -> None:
    """A fork and a yard from a file are the same and decide the same."""
    look, said = chaos.look(), set()
    for twin in chaos.twins():
        if json.dumps(state_of(twin), sort_keys=True) != look:
            raise AssertionError("a twin is another")
        said.add(repr(twin.handle(DecisionDue(chaos.now_s))))
    if len(said) > 1:
        raise AssertionError("twins decide differently")


def main() -> int:
    """Lead lives until there were enough events."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", help="one life again, as POLICY:SEED")
    given = parser.parse_args()
    if given.only:
        policy, _, seed = given.only.rpartition(":")
        live(policy, int(seed), STEPS)
        return 0
    named, events, ignored, wrong, began, lives = policies(), 0, 0, 0, perf_counter(), 0
    seen: Counter[str] = Counter()
    while events < given.events:
        policy, seed = named[lives % len(named)], given.seed * 1_000_000 + lives
        lives += 1
        try:
            chaos = live(policy, seed, STEPS)
        except Exception as error:
            wrong += 1
            print(f"{policy}:{seed}: {type(error).__name__}: {error}", flush=True)
            events += STEPS
            continue
        events += len(chaos.log)
        ignored += chaos.ignored
        seen.update(record["event"] for record in chaos.log)
        if lives % 100 == 0:
            print(f"{events:,} events, {wrong} lives went wrong, {perf_counter() - began:.0f} s", flush=True)
    print(f"{lives:,} lives of {len(named)} policies, {events:,} events, {ignored:,} ignored: {wrong} bad")
    print(", ".join(f"{name} {count:,}" for name, count in seen.most_common()))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
