"""Learning on while jobs keep coming: long streams with and without it, and what the guard said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trainyard.learn.episode import Scenario, Source
from trainyard.learn.online import Learning, Online, Verdict
from trainyard.learn.settings.paper_jobs import HELD_OUT_SEED, KINDS, Setting, dl2_cluster, dl2_trace
from trainyard.learn.workload import Split
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.model.speed import SpeedModel
from trainyard.policy.grammar import parse_policy
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.weights import load_weights
from trainyard.report.canvas import INK, labelled, new_figure, png_bytes
from trainyard.report.palette import POLICY_LIGHT
from trainyard.reproduce.findings import Cell, Heading, Table
from trainyard.sim.clock import Simulator

if TYPE_CHECKING:
    from trainyard.policy.size.dl2.weights import Weights

BASE = Setting(10, 60, 3, 1000, slot_s=300.0)  # as the testbed, with room for a stream that does not end
LEARNS, FIXED, RULES = "dl2, learns on", "dl2, fixed", ("drf", "lookahead")
SMOOTHING = 0.3  # of the imitation: what never tries anything else learns nothing
TEACHING = 4_000_000  # first seed of the traces that the start was taught on
WINDOWS = 6  # of a stream


@dataclass(frozen=True, slots=True)
class Case:
    """A stream of jobs, and the weights that it begins with."""

    name: str
    kinds: tuple[str, str] = ("all", "all")  # of the first half and of the second one
    start: str = "drf"  # who was imitated, or the name of weights


class Scale(NamedTuple):
    """How long a stream is, and how much is learnt."""

    jobs: int
    imitated: int  # decisions
    learning: Learning


MIXES = {"all": KINDS, "first four": KINDS[:4], "last four": KINDS[4:]}
STEADY, DRIFT, FOREIGN, GOOD = (
    Case("drf imitated"),
    Case("drf imitated, then other kinds of jobs", ("first four", "last four")),
    Case("weights for all-reduce jobs", start="philly"),
    Case("weights that are good already", start="paper"),
)
FULL = Scale(720, 40_000, Learning(every=90))
QUICK = Scale(102, 5_000, Learning(every=60, block=10, iterations=6))


@dataclass(frozen=True, slots=True)
class Stream:
    """One case under all policies."""

    case: Case
    scale: Scale
    seed: int = 0

    def carry_out(self) -> Course:
        """Simulate."""
        jobs, start = self.jobs(), self._start()
        jct = {name: self._run(parse_policy(name), jobs) for name in RULES}
        jct[FIXED] = self._run(_dl2(start), jobs)
        policy = _dl2(start)
        with TemporaryDirectory() as directory:
            online = Online(policy, Path(directory), self.scale.learning)
            try:
                jct[LEARNS] = self._run(policy, jobs, online)
            finally:
                online.close()
        arrivals = [job.arrival_s for job in jobs]
        return Course(
            jct, online.verdicts, [int(np.searchsorted(arrivals, v.judged_s)) for v in online.verdicts]
        )

    def jobs(self) -> list[Job]:
        """Two halves, one after the other."""
        halves: list[Job] = []
        for half, kinds in enumerate(self.case.kinds):
            setting = replace(BASE, jobs=self.scale.jobs // 2, kinds=MIXES[kinds])
            came = dl2_trace(setting, np.random.RandomState(HELD_OUT_SEED + 2 * self.seed + half))
            begin_s = halves[-1].arrival_s + BASE.slot_s if halves else 0.0
            halves += [replace(j, job_id=f"{half}-{j.job_id}", arrival_s=j.arrival_s + begin_s) for j in came]
        return halves

    def _run(self, policy: Policy, jobs: Sequence[Job], online: Online | None = None) -> list[float]:
        """Average JCT in slots of each window of arrivals."""
        cluster, speed = _ground()
        options = Rules(round_s=BASE.slot_s)
        result = Simulator(cluster, jobs, policy, options, speed=speed, watcher=online).run()
        windows = np.array_split(result.outcomes.jct_s / BASE.slot_s, WINDOWS)
        return [float(window.mean()) for window in windows]

    def _start(self) -> Weights:
        if self.case.start not in RULES:
            return load_weights(self.case.start)
        return _imitation(self.case.start, self.case.kinds[0], self.scale.imitated)


class Course(NamedTuple):
    """What came of it."""

    jct: Mapping[str, Sequence[float]]  # average of each window in slots, by policy
    verdicts: Sequence[Verdict]
    came: Sequence[int]  # jobs that had come when each was given


Found = Mapping[Stream, Course]


def _dl2(weights: Weights) -> Policy:
    policy = parse_policy("dl2")
    policy.size.weights = weights  # type: ignore[attr-defined]
    return policy


@cache
def _ground() -> tuple[Any, SpeedModel]:
    cluster = dl2_cluster(BASE.nodes)
    return cluster, SpeedModel(cluster)


@cache
def _imitation(teacher: str, kinds: str, decisions: int) -> Weights:
    """Weights that imitate a policy and know no better."""
    from trainyard.learn.journal import Journal
    from trainyard.learn.rl import Settings
    from trainyard.learn.training import Training, train
    from trainyard.learn.warmup import Imitation

    setting = replace(BASE, kinds=MIXES[kinds])
    source = _taught(setting)
    split = Split(source, source, source, BASE.slot_s)
    how = Imitation(decisions=decisions, chunk=decisions // 5, smoothing=SMOOTHING)
    plan = Training(parse_policy(teacher), ((1.0, split),), imitation=how, rl=Settings(iterations=0))
    return train(plan, Journal(), {})


def _taught(setting: Setting) -> Source:
    cluster, speed = _ground()

    def scenario(number: int) -> Scenario:
        jobs = dl2_trace(setting, np.random.RandomState(TEACHING + number))
        return Scenario(cluster, jobs, setting.slot_s, speed)

    return scenario


def tasks(quick: bool) -> list[Stream]:
    """Every stream; none without PyTorch."""
    if find_spec("torch") is None:
        return []
    return (
        [Stream(STEADY, QUICK)] if quick else [Stream(case, FULL) for case in (DRIFT, STEADY, FOREIGN, GOOD)]
    )


def tables(quick: bool, found: Found) -> list[Table]:
    """Completion times as the stream goes on, and all verdicts."""
    streams = tasks(quick)
    if not streams:
        return []
    return [_courses(streams, found), _verdicts(streams, found)]


def _courses(streams: Sequence[Stream], found: Found) -> Table:
    names = (*RULES, FIXED, LEARNS)
    rows: list[list[Cell]] = []
    for stream in streams:
        course, each = found[stream], stream.scale.jobs // WINDOWS
        for i, jct in enumerate(zip(*(course.jct[name] for name in names), strict=True)):
            taken = sum(
                v.taken and i * each <= n < (i + 1) * each
                for v, n in zip(course.verdicts, course.came, strict=True)
            )
            rows.append([stream.case.name, (i + 1) * each, *jct, 100 * (1 - jct[3] / jct[2]), taken])
    columns = [Heading("case"), Heading("jobs so far"), *(Heading(name, "{:.2f}") for name in names)]
    columns += [Heading("% better than fixed", "{:.1f}"), Heading("new weights")]
    note = (
        "Average JCT in slots of the jobs of each window of one long stream on 10 nodes, 3 jobs per slot at "
        "most. dl2 begins with an imitation of drf, or with weights that ship. new weights: how often they "
        "were taken in this window."
    )
    return Table("dl2-online", "Learning on while jobs keep coming", columns, rows, note)


def _verdicts(streams: Sequence[Stream], found: Found) -> Table:
    rows: list[list[Cell]] = [
        [stream.case.name, v.lesson, n, v.episodes, *(None if x != x else x for x in v[4:6]), v.outcome]
        for stream in streams
        for v, n in zip(found[stream].verdicts, found[stream].came, strict=True)
    ]
    columns = [Heading("case"), Heading("lesson"), Heading("jobs so far"), Heading("replays")]
    columns += [Heading("current", "{:.3f}"), Heading("candidate", "{:.3f}"), Heading("verdict")]
    note = "Average JCT in slots on blocks of recent jobs that nothing was learnt from, same draws for both."
    return Table("dl2-online-verdicts", "What the guard said", columns, rows, note)


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Draw completion times as the streams go on."""
    if not tables:
        return {}
    records = tables[0].records()
    cases = list(dict.fromkeys(str(row["case"]) for row in records))
    figure = new_figure(9, 3.2)
    panels = figure.subplots(1, len(cases), squeeze=False)[0]
    for axes, case in zip(panels, cases, strict=True):
        own = [row for row in records if row["case"] == case]
        for i, name in enumerate((*RULES, FIXED, LEARNS)):
            came, jct = ([row[key] for row in own] for key in ("jobs so far", name))
            axes.plot(came, jct, color=POLICY_LIGHT[i], label=name, linewidth=1.8, marker="o", markersize=4)
        axes.set_ylim(bottom=0.0)
        labelled(axes, "jobs so far", "average JCT, slots", case)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=4, frameon=False, fontsize=8, labelcolor=INK)
    return {"dl2-online.png": png_bytes(figure)}
