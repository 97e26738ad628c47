"""Is a decision a function of the snapshot, and of nothing else? `make purity` (or `python bench/purity.py`).

It draws combinations of stages from the registry, with random parameters, and lets each drive a small random
run. At some of its moments it decides again and again: on a fork, with caches dropped, after the snapshot
went through a file, after another random policy looked. All must be the same to the last bit, and the
snapshot must be left as it was. What differs is printed, with the options that repeat it. The exit code is 1
if anything differs.

What is compared stands in `tests/purity_cases.py`, for a test does the same with every stage.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from hashlib import sha256
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from purity_cases import Looks, look_at_a_run, random_scene
from stage_cases import names_in, random_policy
from trainyard.errors import InputError
from trainyard.policy.grammar import parse_policy
from trainyard.policy.registry import ENTRIES

PART = 0.3  # of the moments of a run that are looked at


def main() -> int:
    """Look at all combinations and say what was found."""
    parser = argparse.ArgumentParser(description="Compare decisions that must be the same.")
    parser.add_argument("--seed", type=int, default=1, help="other combinations and runs")
    parser.add_argument("--combinations", type=int, default=200, help="how many of them")
    parser.add_argument("--only", type=int, help="repeat the combination of this number")
    args = parser.parse_args()
    numbers = range(1, args.combinations + 1) if args.only is None else [args.only]
    compared: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    differences: list[str] = []
    policies: list[str] = []
    digest = sha256()
    moments = changes = decisions = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            draw = Random(f"{args.seed}-{number}")
            policy, other = legal(draw, refused), legal(draw, refused)
            looks = Looks(policy, other, Path(folder, "snapshot.json"))
            moments += looked_at(looks, draw)
            repeat = f"--seed {args.seed} --only {number}"
            for found in looks.found:
                differences.append(found)
                print(f"DIFFERS ({repeat}) {found}", flush=True)
            policies += [looks.policy, looks.other]
            compared += looks.compared
            digest.update("\n".join(looks.plans).encode())
            decisions += looks.decisions
            changes += looks.changes
    drawn = f"{len(names_in(policies))} of {len(ENTRIES)} stages"
    print(f"{len(numbers)} combinations ({len(set(policies))} policies) of {drawn}")
    print(f"{refused.total()} more were refused by the grammar; the first: {next(iter(refused), 'none')}")
    print(f"{moments:,} moments, {changes:,} with changes; {decisions:,} decisions; comparisons:")
    for kind, count in compared.items():
        print(f"  {kind:<45}{count:>7,}")
    print(f"  {'all':<45}{compared.total():>7,}")
    print(f"digest of all plans, the same in every process: {digest.hexdigest()[:16]}")
    print(f"{len(differences)} differences, {time.process_time():.0f} s of CPU")
    return 1 if differences else 0


def legal(draw: Random, refused: Counter[str]) -> str:
    """Draw until the grammar takes it."""
    while True:
        policy = random_policy(draw)
        try:
            parse_policy(policy)
        except InputError as error:
            refused[str(error)] += 1
        else:
            return policy


def looked_at(looks: Looks, draw: Random) -> int:
    """Look at one run; what a stage raises counts as a difference. Return the number of moments."""
    try:
        scene, live = random_scene(draw), draw.random() < 0.5
        return look_at_a_run(looks, scene, draw, live, when=lambda _: draw.random() < PART)
    except Exception as error:
        told = traceback.format_exception(error)
        looks.found.append(f"raised: {looks.policy} (the other: {looks.other})\n{''.join(told[-6:])}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
