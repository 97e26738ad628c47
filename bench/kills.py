"""Kill the live controller a thousand times, over real processes, and look at what is left: `make kills`.

Half of the kills are at points of the protocol that have a name, half at random instants; shims and workers
are killed, too, and some controllers go down gracefully. In the end every job is over exactly once, every
step of its history is there exactly once, the story says what was repeated, and the log replays to the last
byte. Then protocols that are broken on purpose have to be noticed by the same checks. The exit code is 1 if
anything is wrong; what is printed repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from broken_protocols import MISTAKES, play
from kill_cases import AT_WORK, IN_RECOVERY, Found, Plan
from kill_checks import run
from postgres_cases import MISSING, Postgres, is_there

AT_ONCE = 25  # kills of one store
ON_POSTGRES = 0.3  # of the kills, if both are asked for

Urls = Callable[[Path], str]


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    asked = parser.parse_args()
    if asked.store != "sqlite" and not is_there():
        print(f"error: --store {asked.store} {MISSING}", file=sys.stderr)
        return 2
    wanted = {"sqlite": asked.kills, "postgres": asked.kills}
    if asked.store == "both":
        wanted["postgres"] = round(asked.kills * ON_POSTGRES)
        wanted["sqlite"] = asked.kills - wanted["postgres"]
    began, found = perf_counter(), {}
    for store in ("sqlite", "postgres") if asked.store == "both" else (asked.store,):
        with urls_of(store) as url:
            found[store] = kill(store, url, wanted[store], asked.seed)
    unnoticed = missed_mistakes()
    show(found, unnoticed, perf_counter() - began)
    return int(bool(unnoticed or any(each.wrong for each in found.values())))


@contextmanager
def urls_of(store: str) -> Iterator[Urls]:
    """Return what makes a new store."""
    if store == "sqlite":
        yield lambda folder: f"sqlite:///{folder}/store.db"
        return
    server = Postgres()
    try:
        yield lambda folder: server.new_database()
    finally:
        server.close()


def kill(store: str, url: Urls, wanted: int, seed: int) -> Found:
    """Kill controllers of one store after the other until it was often enough."""
    found = Found()
    while (left := wanted - found.kills.total()) > 0:
        with tempfile.TemporaryDirectory(prefix="ty-kills-") as folder:
            kills = min(AT_ONCE, left)
            plan = Plan(seed, Path(folder) / "jobs", url(Path(folder)), kills, jobs=kills + 3)
            each = run(plan)
        each.wrong = [f"{store}, seed {seed}: {what}" for what in each.wrong]
        found.add(each)
        print("\n".join(each.wrong), end="\n" if each.wrong else "", file=sys.stderr)
        done = found.kills.total()
        print(f"{store}: seed {seed}, {done} kills, {len(found.wrong)} wrong", file=sys.stderr, flush=True)
        seed += 1
    return found


def missed_mistakes() -> list[str]:
    """Return the broken protocols that nobody noticed."""
    missed = []
    for name, mistake in MISTAKES.items():
        with tempfile.TemporaryDirectory(prefix="ty-kills-") as folder:
            found = play(name, Path(folder) / "jobs", f"sqlite:///{folder}/store.db", broken=True)
        if mistake.evidence not in "; ".join(found.wrong):
            missed.append(name)
    return missed


def show(found: dict[str, Found], unnoticed: list[str], seconds: float) -> None:
    """Print what was done and what was found."""
    columns = list(found.values())

    def row(name: str, *numbers: int) -> None:
        print(f"{name:32}" + "".join(f"{number:>10,}" for number in numbers))

    print(f"{'':32}" + "".join(f"{store:>10}" for store in found))
    row("kills of the controller", *(each.kills.total() for each in columns))
    for label in (*IN_RECOVERY, *AT_WORK, "random instant"):
        row(f"  {label}", *(each.kills[label] for each in columns))
    for who in ("shim", "worker"):
        row(f"kills of a {who}", *(each.hurt[who] for each in columns))
    row("graceful ends", *(each.downs for each in columns))
    for name in ("lives", "jobs", "attempts", "events"):
        row(name, *(getattr(each, name) for each in columns))
    row("steps repeated", *(each.repeated for each in columns))
    row("wrong", *(len(each.wrong) for each in columns))
    noticed = len(MISTAKES) - len(unnoticed)
    print(f"broken protocols noticed: {noticed} of {len(MISTAKES)}; {seconds:.0f} s")
    for name in unnoticed:
        print(f"not noticed: {name}")


if __name__ == "__main__":
    sys.exit(main())
