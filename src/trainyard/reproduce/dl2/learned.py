"""What DL2 learns: on held-out traces, without its ingredients, from other teachers, on what it never saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from trainyard.learn.settings.paper_jobs import SETTINGS
from trainyard.learn.settings.splits import AnySetting
from trainyard.model.arrays import Floats
from trainyard.reproduce.dl2 import sweeps
from trainyard.reproduce.dl2.figures import draw_learning
from trainyard.reproduce.dl2.learning import Learned, Learning
from trainyard.reproduce.dl2.rules import DRF, LOOKAHEAD, OPTIMUS, STEEPEST
from trainyard.reproduce.dl2.runs import Group, Run
from trainyard.reproduce.dl2.theirs import BETTER_THAN_DRF, BETTER_THAN_OPTIMUS
from trainyard.reproduce.findings import Cell, Heading, Table

PROFILED = "Optimus, profiled"
PUPILS = ("imitates steepest", "imitates look-ahead")
RIVALS = (DRF, OPTIMUS, PROFILED, LOOKAHEAD, STEEPEST)
SEEDS, QUICK_SEEDS = range(5), range(2)
LEARNT_ON = ("testbed", "s16e3k", "s16e6k", "n24e4k", "busy16", "n48e10k")
JUDGED = {"testbed": 10, "s16e3k": 10, "n48e4k": 10, "h48e4k": 10, "busy16": 10, "busy48": 10, "large": 3}
QUICK_JUDGED = {"testbed": 2}
IMITATED = [SETTINGS[name] for name in ("testbed", "s16e3k", "n48e4k", "h48e4k", "busy16")]
QUICK: dict[str, Any] = {"iterations": 2, "decisions": 20_000, "changes": (("validate", 1),)}

# Ingredients are tried out where that is cheap: on six nodes, with fewer episodes at a time.
TRIED_ON, TRIED_ITERATIONS, TRIED_SEEDS = "testbed", 15, range(1)
TRIED: tuple[tuple[str, Any], ...] = (("rows", 24), ("group", 4))
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no warm-up": {"teacher": "none"},
    "looks ahead: discount 0.9": {"changes": (("discount", 0.9),)},
    "no critic": {"changes": (("baseline", False),)},
    "with replay (2 iterations)": {"changes": (("replay", 2),)},
    "with job-aware exploration (0.1)": {"changes": (("explore", 0.1),)},
    "reward: minus jobs in the system": {"changes": (("reward", "job-slots"),)},
    "reward: progress (the paper's)": {"changes": (("reward", "progress"),)},
    "the paper's network": {"network": "window"},
    "teacher: steepest": {"teacher": "steepest"},
    "teacher: DRF": {"teacher": "drf"},
    "teacher: Optimus": {"teacher": "optimus(hysteresis=false)"},
}
QUICK_VARIANTS = ("as it is", "no warm-up", "the paper's network")
SEEN, UNSEEN = sweeps.SEEN, sweeps.UNSEEN


def _main(quick: bool) -> list[Learning]:
    """The same training with several seeds; judged on more than it was trained on."""
    if quick:
        judged = tuple((SETTINGS[name], traces) for name, traces in QUICK_JUDGED.items())
        base = Learning((SETTINGS["testbed"],), judged, teacher="lookahead", **QUICK)
        return [replace(base, seed=seed) for seed in QUICK_SEEDS]
    swept = dict.fromkeys(sweeps.sweeps(quick).values(), sweeps.FULL_TRACES)
    judged = tuple({**swept, **{SETTINGS[name]: traces for name, traces in JUDGED.items()}}.items())
    on = tuple(SETTINGS[name] for name in LEARNT_ON)
    return [Learning(on, judged, seed, teacher="lookahead") for seed in SEEDS]


def _variants(quick: bool) -> dict[str, list[Learning]]:
    setting = SETTINGS[TRIED_ON]
    budget: dict[str, Any] = {"iterations": TRIED_ITERATIONS, "decisions": 60_000, "changes": TRIED}
    budget = QUICK if quick else budget
    judged = ((setting, QUICK_JUDGED[TRIED_ON] if quick else 10),)
    base = Learning((setting,), judged, teacher="lookahead", **budget)
    seeds = range(1) if quick else TRIED_SEEDS
    names = QUICK_VARIANTS if quick else VARIANTS
    return {
        name: [
            replace(base, seed=seed, **{**other, "changes": (*base.changes, *other.get("changes", ()))})
            for seed in seeds
        ]
        for name, other in VARIANTS.items()
        if name in names
    }


def _unseen() -> dict[str, list[Learning]]:
    """Trained on all kinds of jobs or on four of them, judged on the other four."""
    base = SETTINGS[TRIED_ON]
    judged = ((replace(base, kinds=UNSEEN), 10),)
    return {
        name: [
            Learning(
                (replace(base, kinds=kinds),),
                judged,
                seed,
                TRIED_ITERATIONS,
                60_000,
                "lookahead",
                changes=TRIED,
            )
            for seed in TRIED_SEEDS
        ]
        for name, kinds in (("the other four kinds only", SEEN), ("all eight kinds", base.kinds))
    }


def _before(learning: Learning) -> Learning:
    """Imitation alone."""
    judged = tuple((setting, traces) for setting, traces in learning.judged if setting in IMITATED)
    return replace(learning, iterations=0, judged=judged, changes=())


def _pupil(main: Sequence[Learning]) -> Learning:
    """Imitation of the best rule instead, alone."""
    return replace(_before(main[0]), teacher="steepest")


def _groups(learnings: Iterable[Learning]) -> list[Group]:
    """Traces that trainings are judged on."""
    judged = dict(pair for learning in learnings for pair in learning.judged)
    return [Group((), setting, traces) for setting, traces in judged.items()]


def tasks(quick: bool) -> list[Learning | Run]:
    """Every training, the longest first, and the rules to compare with."""
    if find_spec("torch") is None:
        return []
    main, variants = _main(quick), _variants(quick)
    small = [learning for group in variants.values() for learning in group]
    if not quick:
        small += [learning for group in _unseen().values() for learning in group]
    taught = [_before(learning) for learning in [*main, *small] if learning.teacher != "none"]
    taught.append(_pupil(main))
    rules = [run for group in _groups([*main, *small]) for rule in RIVALS for run in group.runs(rule)]
    return [*main, *small, *dict.fromkeys(taught), *rules]


Found = Mapping[Any, Any]


def tables(quick: bool, found: Found) -> list[Table]:
    """What was learnt, what it takes, and how far it carries."""
    if find_spec("torch") is None:
        note = "Training needs PyTorch: pip install 'trainyard[learn]'."
        return [Table("dl2-learned", "Learning: left out", [Heading("why")], [["no PyTorch"]], note)]
    return [
        *_learned(quick, found),
        _curves(quick, found),
        _ingredients(quick, found),
        *_carried(quick, found),
    ]


def _scores(learnings: Sequence[Learning], setting: AnySetting, found: Found) -> Floats:
    """Average JCT by seed."""
    return np.array([found[learning].scores[setting].jct for learning in learnings])


def _rival(rule: str, setting: AnySetting, traces: int, found: Found) -> float:
    return float(Group((), setting, traces).outcomes(rule, found)[:, 0].mean())


def _learned(quick: bool, found: Found) -> list[Table]:
    main = _main(quick)
    jcts: list[list[Cell]] = []
    better: list[list[Cell]] = []
    for name, traces in (QUICK_JUDGED if quick else JUDGED).items():
        setting = SETTINGS[name]
        rivals = [_rival(rule, setting, traces, found) for rule in RIVALS]
        pupils: list[float | None] = [None, None]
        if setting in IMITATED:
            taught = _scores([_before(one) for one in main], setting, found)
            pupils = [float(_scores([_pupil(main)], setting, found)[0]), float(taught.mean())]
        all_jct = _scores(main, setting, found)
        jct, spread = float(all_jct.mean()), float(all_jct.std(ddof=1))
        scores = np.mean([found[one].scores[setting] for one in main], axis=0)
        bound = float(Group((), setting, traces).outcomes(DRF, found)[:, 2].mean())
        cells: list[Cell] = [name, float(setting.nodes), *rivals, *pupils, jct, spread]
        jcts.append([*cells, float(scores[1]), bound / jct])
        gains: list[Cell] = [rival and 100 * (1 - jct / rival) for rival in (*rivals, *pupils)]
        better.append([name, *gains, bound / jct, 100 * float(scores[2])])
    better.append(["the paper", BETTER_THAN_DRF, BETTER_THAN_OPTIMUS, *[None] * 7])
    rules = [Heading(rule, "{:.2f}") for rule in RIVALS]
    columns = [
        Heading("setting"),
        Heading("nodes", "{:.0f}"),
        *rules,
        *(Heading(name, "{:.2f}") for name in PUPILS),
    ]
    columns += [Heading("DL2", "{:.2f}"), Heading("+-", "{:.2f}"), Heading("makespan", "{:.1f}")]
    contention = Heading("bound / JCT", "{:.2f}")
    over = [Heading("setting"), *(Heading(f"than {rule}", "{:.1f}") for rule in (*RIVALS, *PUPILS))]
    note = (
        f"Average JCT in slots on held-out traces; learned: means over {len(main)} training seeds, +- the "
        "standard deviation over them; who imitates steepest is one of them. DL2 first imitates look-ahead, "
        "then learns by itself; it is the policy that did best on other traces on the way. bound / JCT: 1 if "
        "nothing is left to gain."
    )
    left = "Left to the fallback: per cent of decisions whose jobs were too unlike those learnt from."
    return [
        Table("dl2-learned", "Learned: average completion time", [*columns, contention], jcts, note),
        Table(
            "dl2-better",
            "Learned: per cent better",
            [*over, contention, Heading("left to the fallback", "{:.1f}")],
            better,
            left,
        ),
    ]


def _curves(quick: bool, found: Found) -> Table:
    """Every point of every learning curve: what the picture is drawn from."""
    rows: list[list[Cell]] = []
    for name, learnings in {"main": _main(quick), **_variants(quick)}.items():
        for learning in learnings:
            learned: Learned = found[learning]
            curves = learned.curves
            rows += [[name, learning.seed, "warm-up", n, None, agreed] for n, agreed in curves.agreement]
            rows += [[name, learning.seed, "rl", n, cpu_s / 60, jct] for n, cpu_s, jct in curves.validation]
    columns = [
        Heading("training"),
        Heading("seed"),
        Heading("part"),
        Heading("step"),
        Heading("CPU minutes", "{:.1f}"),
        Heading("number", "{:.3f}"),
    ]
    note = (
        "warm-up: decisions imitated, and how often the network agrees with its teacher; rl: iterations, and "
        "average JCT in slots on validation traces."
    )
    return Table("dl2-curves", "Learning curves", columns, rows, note)


def _ingredients(quick: bool, found: Found) -> Table:
    setting, traces = SETTINGS[TRIED_ON], QUICK_JUDGED[TRIED_ON] if quick else 10
    ahead = _rival(LOOKAHEAD, setting, traces, found)
    rows: list[list[Cell]] = []
    for name, learnings in _variants(quick).items():
        taught = learnings[0].teacher != "none"
        before = _scores([_before(one) for one in learnings], setting, found).mean() if taught else None
        jct = _scores(learnings, setting, found)
        minutes = np.mean([found[one].cpu_s for one in learnings]) / 60
        spread = float(np.ptp(jct)) if len(jct) > 1 else None
        better = 100 * (1 - float(jct.mean()) / ahead)
        rows.append(
            [
                name,
                None if before is None else float(before),
                float(jct.mean()),
                spread,
                better,
                float(minutes),
            ]
        )
    columns = [
        Heading("training"),
        Heading("imitation", "{:.2f}"),
        Heading("after RL", "{:.2f}"),
        Heading("between seeds", "{:.2f}"),
        Heading("% better than look-ahead", "{:.1f}"),
        Heading("CPU minutes", "{:.1f}"),
    ]
    note = (
        f"{TRIED_ON}, {len(jct)} seeds, average JCT in slots on held-out traces. DRF "
        f"{_rival(DRF, setting, traces, found):.2f}, Optimus {_rival(OPTIMUS, setting, traces, found):.2f}, "
        f"look-ahead {ahead:.2f}."
    )
    return Table("dl2-ingredients", "Ingredients and teachers", columns, rows, note)


def _carried(quick: bool, found: Found) -> list[Table]:
    """Cluster sizes, arrival rates and kinds of jobs that were not trained on."""
    if quick:
        return []
    main = _main(quick)
    rows: list[list[Cell]] = []
    cases: list[tuple[str, str, AnySetting, list[Learning]]] = [
        (*label, setting, main) for label, setting in sweeps.sweeps(quick).items()
    ]
    for name, learnings in _unseen().items():
        cases.append(("last four kinds, trained on", name, learnings[0].judged[0][0], learnings))
    for varied, value, setting, learnings in cases:
        rivals = [_rival(rule, setting, 10, found) for rule in RIVALS]
        jct = _scores(learnings, setting, found)
        bound = float(Group((), setting, 10).outcomes(DRF, found)[:, 2].mean())
        mean, spread = float(jct.mean()), float(jct.std(ddof=1)) if len(jct) > 1 else None
        rows.append(
            [
                varied,
                value,
                *rivals,
                mean,
                spread,
                100 * (1 - mean / rivals[RIVALS.index(LOOKAHEAD)]),
                bound / mean,
            ]
        )
    columns = [
        Heading("varied"),
        Heading("value"),
        *(Heading(rule, "{:.2f}") for rule in RIVALS),
        Heading("DL2", "{:.2f}"),
        Heading("+-", "{:.2f}"),
        Heading("% better than look-ahead", "{:.1f}"),
        Heading("bound / JCT", "{:.2f}"),
    ]
    note = "As s16e3k but for what varies; the last two rows: the testbed with its last four kinds of jobs."
    return [Table("dl2-carried", "The same weights elsewhere", columns, rows, note)]


def pictures(tables: Sequence[Table]) -> Mapping[str, bytes]:
    """Draw the learning curves."""
    named = {table.name: table for table in tables}
    return draw_learning(named["dl2-curves"]) if "dl2-curves" in named else {}
