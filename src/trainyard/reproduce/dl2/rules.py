"""The policies of the DL2 experiments: ours, and simple rules that any of them must beat.

The rules live here because no cluster would be run by them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add

import numpy as np

from trainyard.learn.episode import Scenario
from trainyard.learn.workload import bound
from trainyard.model.arrays import Floats, Ints
from trainyard.model.job import Job
from trainyard.model.profile import Profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.features import Features
from trainyard.policy.size.dl2.slot import Slots
from trainyard.policy.size.growth import ALL, Amounts, Growth, all_sizes, grow, growers_of, in_turn, tasks_of
from trainyard.policy.size.optimus import one_by_one
from trainyard.policy.stages import Chosen, Shapes, Size
from trainyard.profiling.scaling import fit_scaling
from trainyard.state.beliefs import Told
from trainyard.state.capacity import up_capacity
from trainyard.state.snapshot import Snapshot

RUNS = 8  # of each kind of job, short ones, from which Optimus fits its speeds
MOST_PROFILED = 10  # workers, and servers, of such a run
NOISE = 0.05  # standard deviation of a speed measured there
ROUNDING = 1e-9


class AllTheyCanHave(Size):
    """The first job takes pairs of worker and server up to its limit, then the next, while there is room."""

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return as many servers as workers."""
        tasks = _tasks(snapshot, ranked)

        def one_more(i: int, size: int, _: Amounts) -> Growth[int] | None:
            job, worker, server = tasks[i]
            return (0.0, tuple(map(add, worker, server)), size + 1) if size < job.most_gpus else None

        sizes = grow(dict.fromkeys(range(len(tasks)), 0), ALL, one_more)
        pairs = all_sizes(sizes, 0, len(tasks))
        return Chosen(Shapes(pairs, pairs))


class TetrisTasks(Size):
    """Tetris (Grandl et al., SIGCOMM'14) with pairs of worker and server as tasks.

    Each node in turn takes the task that fits and has the highest score: the dot product of what it needs and
    what is free, less the work left of its job, weighted so that both count the same on average.
    """

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return as many servers as workers."""
        jobs, nodes = [snapshot.table.jobs[row] for row in ranked], snapshot.nodes
        room = np.column_stack([nodes.gpus, nodes.cpus, nodes.memory_gb])[snapshot.up]
        need = np.array([(1.0, *job.need(1, 1)) for job in jobs]).reshape(-1, 3)
        work = snapshot.remaining_s()[ranked] * (need / room.sum(axis=0)).sum(axis=1)
        most, count = np.array([job.most_gpus for job in jobs]), np.zeros(len(jobs), dtype=np.int64)
        for whole in room:
            if (count == most).all():
                break
            free = whole.copy()
            while (fits := (need <= free + ROUNDING).all(axis=1) & (count < most)).any():
                aligned = (need / whole) @ (free / whole)
                score = aligned - work * (aligned[fits].mean() / max(work[fits].mean(), ROUNDING))
                best = int(np.where(fits, score, -np.inf).argmax())
                count[best] += 1
                free -= need[best]
        return Chosen(Shapes(count, count))


class OneWorker(Size):
    """Everybody has one worker and one server; then servers are dealt out in turn while there is room."""

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return one worker or none, and servers."""
        tasks = _tasks(snapshot, ranked)

        def one_more(i: int, size: int, _: Amounts) -> Growth[int] | None:
            job, _, server = tasks[i]
            return (size, server, size + 1) if size < job.most_gpus else None

        served, room = in_turn([tuple(map(add, worker, server)) for _, worker, server in tasks], ALL)
        sizes = grow(dict.fromkeys(served, 1), room, one_more)
        servers = all_sizes(sizes, 0, len(tasks))
        return Chosen(Shapes(np.minimum(servers, 1), servers))


class ProfiledOptimus(Size):
    """Optimus that knows of each kind of job a few short runs at random sizes, and what it fits to them."""

    def __init__(self) -> None:
        self.surfaces: dict[str, Floats] = {}  # by name of the profile

    def shapes(self, snapshot: Snapshot, ranked: Ints) -> Chosen:
        """Return workers and servers."""
        beliefs = Profiled(snapshot, self.surfaces)
        target = one_by_one(growers_of(beliefs, ranked), beliefs.left[ranked].tolist(), {})
        return Chosen(Shapes(target[:, 0], target[:, 1]))


class Profiled(Told):
    """Speeds fitted to a few short runs of each profile, by name."""

    def __init__(self, snapshot: Snapshot, surfaces: dict[str, Floats]) -> None:
        super().__init__(snapshot)
        self._surfaces = surfaces

    def surface(self, row: int) -> Floats:
        """Fit Optimus's speed function, once for all jobs of the kind."""
        profile = self.snapshot.table.jobs[row].profile
        assert profile is not None
        if profile.name not in self._surfaces:
            self._surfaces[profile.name] = _profiled(profile, super().surface(row))
        return self._surfaces[profile.name]


def _profiled(profile: Profile, true: Floats) -> Floats:
    """What Optimus believes after its short runs; a kind of job has the same in every trace."""
    draw = np.random.default_rng([*profile.name.encode()])
    workers, servers = 1 + draw.integers(MOST_PROFILED, size=(2, RUNS))
    measured = true[workers, servers] * draw.normal(1.0, NOISE, RUNS)
    fit = fit_scaling("sync", profile.batch, profile.scaling, workers, servers, measured)
    w, p = np.indices((true.shape[0] - 1, true.shape[1] - 1)).reshape(2, -1) + 1
    believed: Floats = np.zeros_like(true)
    believed[1:, 1:] = fit.fitted(w, p).reshape(true.shape[0] - 1, -1)
    return believed


def _tasks(snapshot: Snapshot, ranked: Ints) -> list[tuple[Job, Amounts, Amounts]]:
    """Each ranked job with the parts of the cluster that its worker and its server take."""
    jobs = [snapshot.table.jobs[row] for row in ranked.tolist()]
    return [(job, *each) for job, each in zip(jobs, tasks_of(jobs, up_capacity(snapshot)), strict=True)]


DRF, OPTIMUS, LOOKAHEAD, STEEPEST, ONE_WORKER = (
    "DRF",
    "Optimus, true speeds",
    "look-ahead",
    "steepest",
    "one worker, servers in turn",
)
RULES: dict[str, Callable[[], Policy]] = {
    DRF: lambda: parse_policy("drf"),
    "FIFO": lambda: Policy("FIFO", size=AllTheyCanHave()),
    "SRTF": lambda: Policy("SRTF", order=Srtf(), size=AllTheyCanHave()),
    "Tetris": lambda: Policy("Tetris", size=TetrisTasks()),
    "1:1 only": lambda: parse_policy("fifo"),
    ONE_WORKER: lambda: Policy("one worker", size=OneWorker()),
    OPTIMUS: lambda: parse_policy("optimus(hysteresis=false)"),
    "Optimus, profiled": lambda: Policy("profiled", size=ProfiledOptimus()),
    "Optimus, learns": lambda: parse_policy("optimus(mode=learn,hysteresis=false)"),
    LOOKAHEAD: lambda: parse_policy("lookahead(hysteresis=false)"),
    STEEPEST: lambda: parse_policy("steepest(hysteresis=false)"),
}


def policy_of(rule: str) -> Policy:
    """Return the policy behind one of the rules, or a policy by its own name."""
    return RULES[rule]() if rule in RULES else parse_policy(rule)


def bound_slots(scenario: Scenario) -> float:
    """Average JCT if every job ran at its own best size as if it were alone, from its first slot on."""
    waits_s = [-job.arrival_s % scenario.slot_s for job in scenario.jobs]
    return bound(scenario, Slots(1, Features())) + float(np.mean(waits_s)) / scenario.slot_s
