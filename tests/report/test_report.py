"""The report: tables, plots and the numbers behind them, on small runs made here."""

from __future__ import annotations

import heapq
import io
import itertools
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from trainyard import __version__
from trainyard.core.story import ALL_DONE, STARTED, Story
from trainyard.errors import InputError
from trainyard.model.allocation import Allocation, Share
from trainyard.model.cluster import Cluster, uniform_cluster
from trainyard.report import gantt, series, units
from trainyard.report.facts import headline
from trainyard.report.html import TABLE_KEYS, render_report, script_json, write_report
from trainyard.report.measures import MEASURES, RARE, winners, with_speedup
from trainyard.report.palette import policy_style
from trainyard.report.payload import payload
from trainyard.report.png import legend_columns, write_pngs
from trainyard.report.table import comparison_table, summary_table
from trainyard.sim.result import Outcomes, Result, Timeline

# --- runs to report on -----------------------------------------------------------------------------------


class Workload:
    """Jobs as arrays, in order of arrival."""

    def __init__(self, jobs: int, seed: int = 0, gap_s: float = 300.0) -> None:
        rng = np.random.default_rng(seed)
        self.job_id = [f"job-{i}" for i in range(jobs)]
        self.tenant = [f"team-{t}" for t in rng.integers(0, 5, jobs)]
        self.arrival_s = np.sort(rng.uniform(0, gap_s * max(jobs, 1), jobs))
        self.gpus = rng.choice([1, 1, 1, 2, 2, 4, 8, 16], jobs).astype(np.int64)
        self.duration_s = rng.lognormal(8, 1.5, jobs).clip(30, 5e5)


def run(
    cluster: Cluster, work: Workload, policy: str = "fifo", key: Callable[[int], float] = float
) -> Result:
    """Run gangs to their end, the waiting job with the smallest key first; nobody overtakes it."""
    free = {n.node_id: n.gpus for n in cluster.nodes}
    n = len(work.job_id)
    start, finish = np.full(n, np.nan), np.full(n, np.nan)
    story, levels, waiting, running = Story(), [], [], []
    arrivals = iter([*zip(work.arrival_s.tolist(), range(n), strict=True), (np.inf, -1)])
    upcoming, held, total = next(arrivals), 0, cluster.gpus
    while upcoming[1] >= 0 or running:
        now = min(upcoming[0], running[0][0] if running else np.inf)
        while running and running[0][0] <= now:
            _, job, allocation = heapq.heappop(running)
            for share in allocation.shares:
                free[share.node] += share.gpus
            held -= allocation.gpus
            finish[job] = now
            story.append((now, work.job_id[job], ALL_DONE, None))
        while upcoming[0] <= now:
            heapq.heappush(waiting, (key(upcoming[1]), upcoming[1]))
            upcoming = next(arrivals)
        while waiting and total - held >= work.gpus[waiting[0][1]]:
            job = heapq.heappop(waiting)[1]
            allocation = take(free, int(work.gpus[job]))
            held += allocation.gpus
            start[job] = now
            heapq.heappush(running, (now + work.duration_s[job], job, allocation))
            story.append((now, work.job_id[job], STARTED, allocation))
        levels.append((now, len(waiting), len(running), held))
    return result_of(cluster, work, policy, start, finish, story, levels)


def take(free: dict[str, int], gpus: int) -> Allocation:
    """Take GPUs from the first nodes that have any."""
    shares = []
    for node, room in free.items():
        part = min(room, gpus)
        if part:
            shares.append(Share(node, part, 0, 3.0 * part, 62.5 * part))
            free[node] -= part
            gpus -= part
        if not gpus:
            break
    return Allocation(tuple(shares))


def result_of(cluster, work, policy, start, finish, story, levels) -> Result:
    n = len(work.job_id)
    time_s, waiting, running, held = zip(*levels, strict=True) if levels else ((), (), (), ())
    outcomes = Outcomes(
        job_id=work.job_id,
        tenant=work.tenant,
        gpus=work.gpus,
        arrival_s=work.arrival_s,
        start_s=start,
        finish_s=finish,
        ideal_s=work.duration_s,
        fair_s=work.duration_s * 2.5,
        gpu_s=np.nan_to_num(finish - start) * work.gpus,
        restarts=np.zeros(n, np.int64),
        preemptions=np.zeros(n, np.int64),
        model=[""] * n,
        outcome=["done"] * n,
        user=[""] * n,
        priority=np.zeros(n, np.int64),
    )
    timeline = Timeline(
        np.array(time_s, float),
        np.array(waiting, np.int64),
        np.array(running, np.int64),
        np.array(held, np.int64),
    )
    decision_ms = np.full(max(len(levels), 1), 0.25)
    return Result(
        policy, cluster, outcomes, timeline, story, decision_ms, 0.5, float(np.nanmax(finish, initial=0.0))
    )


@pytest.fixture(scope="module")
def results() -> list[Result]:
    cluster, work = uniform_cluster(4, 8, "V100", "lab"), Workload(300)
    return [
        run(cluster, work, "fifo"),
        run(cluster, work, "srtf", lambda i: float(work.duration_s[i])),
        run(cluster, work, "srsf+tune", lambda i: float(work.duration_s[i] * work.gpus[i])),
    ]


@pytest.fixture(scope="module")
def page(results) -> str:
    return render_report(results, "Lab", {"seed": 7, "round_s": 300})


def without_plotly(page: str) -> str:
    """The page without the library that draws the plots: everything that this project wrote."""
    from plotly.offline import get_plotlyjs

    return page.replace(get_plotlyjs(), "")


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])


# --- the page --------------------------------------------------------------------------------------------


def test_page_names_every_policy_and_fact(page):
    own = without_plotly(page)
    for policy in ("fifo", "srtf", "srsf+tune"):
        assert own.count(policy) >= 3  # its chip, its row and its data
    for text in (
        "32 GPUs on 4 nodes (4 x 8 V100)",
        "300 jobs of 5 tenants",
        "<dt>seed</dt><dd>7</dd>",
        f"<dt>version</dt><dd>trainyard {__version__}</dd>",
        "round_s",
    ):
        assert text in own
    for key in TABLE_KEYS:
        assert (f">{MEASURES[key].label}</" in own) == (key not in RARE)
    for plot in ("jct", "classes", "queue", "utilization", "gantt", "fair"):
        assert f'class="plot" id="{plot}"' in own
    assert "{{" not in own


def test_page_has_a_table_of_tenants_that_can_be_sorted(page):
    own = without_plotly(page)
    assert own.count('<table class="sorts">') == 2
    section = re.search(r"<h2>By tenant</h2>.*?</section>", own, re.S)[0]
    assert [section.count(f">team-{i}</th>") for i in range(5)] == [1] * 5


def test_page_loads_nothing(page):
    own = without_plotly(page)
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:)?//""", own)
    assert "http://" not in own
    assert "https://" not in own
    assert "@import" not in own
    assert "default-src 'none'" in own
    assert own.count("<script") == 3


def test_page_sends_nothing(page):
    own = without_plotly(page)
    assert "showSendToCloud: false" in own
    assert "form-action 'none'" in own


def test_same_results_give_same_bytes(results, page, tmp_path):
    assert render_report(results, "Lab", {"seed": 7, "round_s": 300}) == page
    write_report(tmp_path / "report.html", results, "Lab", {"seed": 7, "round_s": 300})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_names_from_users_cannot_become_markup(results):
    evil = "</script><img src=x onerror=alert(1)>"
    work = Workload(5)
    work.job_id = [f"{evil}{i}" for i in range(5)]
    work.tenant = [evil] * 5
    cluster = replace(uniform_cluster(2), name=evil)
    text = without_plotly(render_report([run(cluster, work, evil)], evil, {evil: evil}))
    assert "<img" not in text
    assert data_of(text)["gantt"]["jobs"][0][0].startswith(evil)


def test_script_json_keeps_values_and_hides_markup():
    value = {"<a>": ["</script>", "<!--", "a & b", " "]}
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028") & set(text)


def test_rows_can_be_sorted_and_best_is_marked(page):
    fifo = re.search(r"<tr><th[^>]*>[^/]*</i>fifo</th>(.*?)</tr>", page)[1]
    values = [float(v) for v in re.findall(r'data-value="([^"]+)"', fifo)]
    assert len(values) == len(TABLE_KEYS) - len(RARE)
    assert page.count('class="best"') >= 4


def test_no_results_or_different_workloads_are_refused(results, tmp_path):
    other = run(uniform_cluster(4), Workload(3))
    for bad in ([], [results[0], other]):
        with pytest.raises(InputError):
            render_report(bad)
    with pytest.raises(InputError):
        write_pngs(tmp_path, [])


@pytest.mark.parametrize("jobs", [0, 1])
def test_smallest_workloads_are_drawn(jobs, tmp_path):
    result = run(uniform_cluster(1, 16), Workload(jobs))
    assert "fifo" in without_plotly(render_report([result]))
    assert len(write_pngs(tmp_path, [result])) == 4


def test_unfinished_jobs_show_as_such(results):
    o = results[0].outcomes
    finish = o.finish_s.copy()
    finish[::3] = np.nan
    ends = ["done" if np.isfinite(end) else "unfinished" for end in finish]
    half = replace(results[0], outcomes=replace(o, finish_s=finish, outcome=ends))
    text = without_plotly(render_report([half]))
    assert '<p class="note">Of 300 jobs 200 done, 100 unfinished. Completion times are those of all' in text
    assert data_of(text)["policies"][0]["jct"]["y"][-1] == pytest.approx(2 / 3, abs=1e-4)


def test_missing_libraries_are_named(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"plotly.*trainyard\[plots\]"):
        write_report(tmp_path / "report.html", results)
    with pytest.raises(InputError, match=r"matplotlib.*trainyard\[plots\]"):
        write_pngs(tmp_path / "plots", results)
    assert not list(tmp_path.iterdir())


def test_large_runs_stay_small():
    work = Workload(100_000, gap_s=16.0)
    one = run(uniform_cluster(120, 8, "P100"), work)
    page = render_report([replace(one, policy=f"policy-{i}") for i in range(8)])
    assert len(page.encode()) < 8_000_000
    data = data_of(page)
    for policy in data["policies"]:
        assert max(len(policy[k]["x"]) for k in ("jct", "slowdown", "fairness")) <= 2000
        assert max(len(policy[k]["t"]) for k in ("queue", "utilization")) <= 2001
    assert len(data["gantt"]["bands"]) == 24
    assert all(1000 < len(bars["job"]) <= 4000 for bars in data["gantt"]["bars"])
    assert "24 of 120 nodes" in data["gantt"]["caption"]


def test_pngs_are_deterministic(results, tmp_path):
    first, second = write_pngs(tmp_path / "a", results), write_pngs(tmp_path / "b", results)
    assert [p.name for p in first] == ["jct_cdf.png", "queue.png", "utilization.png", "gantt.png"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes().startswith(b"\x89PNG")
        assert a.read_bytes() == b.read_bytes()
        assert b"matplotlib" not in a.read_bytes()


def test_legends_take_the_columns_they_have_room_for():
    assert legend_columns([4] * 8, 90) == 4
    assert legend_columns([4, 4, 53, 4, 4, 4], 90) == 3
    assert legend_columns([60, 60, 60], 90) == 1
    assert legend_columns([4], 90) == 1


# --- tables ----------------------------------------------------------------------------------------------


def printed(table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_comparison_fits_the_terminal(results, width):
    summaries = [r.summary() for r in results]
    lines = printed(comparison_table(summaries, width=width), width)
    assert all(len(line) <= width for line in lines)
    assert not any("…" in line for line in lines)
    rows = [line for line in lines if line.startswith(("fifo", "srtf", "srsf"))]
    assert len(rows) == 3
    assert units.duration(summaries[0]["avg_jct_s"]) in rows[0]
    assert "1.00x" in rows[0]


def test_wide_comparison_leaves_nothing_out(results):
    lines = printed(comparison_table([r.summary() for r in results], width=140), 140)
    assert not any("wider" in line for line in lines)
    assert "Jain" in "\n".join(lines)


def test_long_policy_names_fold_instead_of_pushing_columns_out(results):
    long = replace(results[0], policy="las(queues=2,threshold_gpu_s=3600)+doubling+pack+tune")
    lines = printed(comparison_table([long.summary(), results[1].summary()], width=100), 100)
    assert all(len(line) <= 100 for line in lines)
    folded = [line[:24].strip() for line in lines]
    assert "las(queues=2," in folded
    assert "threshold_gpu_s=3600)+" in folded
    assert any(line.startswith("doubling+pack+tune") for line in folded)


def test_best_values_are_bold(results):
    summaries = [r.summary() for r in results]
    table = comparison_table(summaries)
    column = next(list(c.cells) for c in table.columns if c.header == "avg\nJCT")
    best = int(np.argmin([s["avg_jct_s"] for s in summaries]))
    assert [any("bold" in str(span.style) for span in cell.spans) for cell in column] == [
        i == best for i in range(3)
    ]


def test_empty_and_broken_summaries_do_not_fail():
    printed(comparison_table([]), 80)
    lines = printed(comparison_table([{"policy": "[red]x[/red]", "avg_jct_s": float("nan")}]), 120)
    assert any("[red]x[/red]" in line for line in lines)


def test_summary_table_lists_every_measure(results):
    text = "\n".join(printed(summary_table(results[0].summary()), 100))
    assert "300 of 300" in text
    for measure in MEASURES.values():
        assert (measure.label in text) == (measure.key not in ("speedup", *RARE))


def test_winners_and_speedup():
    rows = with_speedup([{"avg_jct_s": 4.0}, {"avg_jct_s": 2.0}, {"avg_jct_s": float("nan")}])
    assert [r["speedup"] for r in rows[:2]] == [1.0, 2.0]
    assert winners(rows, MEASURES["avg_jct_s"]) == {1}
    assert winners(rows, MEASURES["speedup"]) == {1}
    assert winners(rows[:1] * 2, MEASURES["avg_jct_s"]) == set()


def test_headline_says_who_won_and_by_how_much():
    def said(*jct: float) -> str:
        return headline(with_speedup([{"policy": f"p{i}", "avg_jct_s": v} for i, v in enumerate(jct)]))

    assert (
        said(7200.0, 3600.0) == "p1 completes a job in 1.00 h on average, 2.00 times faster than p0 (2.00 h)."
    )
    assert said(110.0, 100.0).endswith("10% faster than p0 (1.83 min).")
    assert said(1.0, 2.0).endswith("the shortest of all.")
    assert said(float("nan")) == "No job ended under any policy."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (0.85, "850 ms"), (42, "42.0 s"), (450, "7.50 min"), (4680, "1.30 h"), (9000, "2.50 h"),
     (3 * 86400, "3.00 d"), (float("nan"), "-")],
)  # fmt: skip
def test_durations_in_words(seconds, said):
    assert units.duration(seconds) == said


def test_counts_stay_short():
    assert [units.count(v) for v in (0, 1204, 99_999, 123_456, 2_500_000)] == [
        "0",
        "1,204",
        "99,999",
        "123k",
        "2.50M",
    ]
    assert [units.axis_unit(s).name for s in (60, 3600, 86400, 1e6)] == [
        "seconds",
        "minutes",
        "hours",
        "days",
    ]


# --- series ----------------------------------------------------------------------------------------------


@st.composite
def step_series(draw):
    gaps = draw(st.lists(st.floats(0.001, 1000), min_size=1, max_size=300))
    levels = draw(st.lists(st.integers(0, 1000), min_size=len(gaps), max_size=len(gaps)))
    times = np.cumsum(gaps)
    return series.Steps(times, np.array(levels, float), float(times[-1]) + draw(st.floats(0.001, 1000)))


@given(step_series(), st.integers(4, 200))
@settings(max_examples=60)
def test_extremes_survive(steps, limit):
    small = series.keep_extremes(steps, limit)
    assert small.time_s.size <= max(limit, 4)
    assert small.level.max() == steps.level.max()
    assert small.level.min() == steps.level.min()
    assert (small.time_s[0], small.time_s[-1]) == (steps.time_s[0], steps.time_s[-1])
    assert set(zip(*small[:2], strict=True)) <= set(zip(*steps[:2], strict=True))


@given(step_series(), st.integers(1, 100))
@settings(max_examples=60)
def test_time_means_keep_the_average(steps, buckets):
    small = series.time_means(steps, buckets)
    assert small.time_s.size <= max(buckets, 1)
    assert series.step_mean(small) == pytest.approx(series.step_mean(steps), rel=1e-6, abs=1e-6)
    assert small.level.max() <= steps.level.max() + 1e-6


@given(st.lists(st.one_of(st.floats(0, 1e6), st.just(float("nan"))), max_size=400), st.integers(20, 200))
@settings(max_examples=60)
def test_cdf_points_are_exact(values, limit):
    array = np.array(values, float)
    points = series.cdf(array, limit)
    assert points.x.size <= max(limit, 1)
    for x, fraction in zip(*points, strict=True):
        assert fraction == pytest.approx(np.sum(array <= x) / array.size)
    finite = array[np.isfinite(array)]
    if finite.size:
        assert (points.x[0], points.x[-1]) == (finite.min(), finite.max())


def test_cdf_leaves_no_visible_gap():
    points = series.cdf(np.random.default_rng(1).lognormal(5, 2, 100_000), 1000)
    assert np.diff(points.fraction).max() <= 1 / 400
    assert points.x.size <= 1000


@given(st.lists(st.integers(1, 512), min_size=1, max_size=100))
def test_every_job_is_in_one_gpu_class(gpus):
    classes = series.classes_by_gpus(np.array(gpus, np.int64))
    assert (np.sum([c.members for c in classes], axis=0) == 1).all()
    assert len({c.label for c in classes}) == len(classes)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=100))
def test_every_job_is_in_one_length_class(lengths):
    classes = series.classes_by_length(np.array(lengths))
    assert (np.sum([c.members for c in classes], axis=0) == 1).all()
    assert len(classes) <= 4


def test_class_names_say_what_is_in_them():
    assert [c.label for c in series.classes_by_gpus(np.array([1, 2, 4, 8, 5, 100]))] == [
        "1 GPU", "2 GPUs", "4 GPUs", "5-8 GPUs", "100 GPUs",
    ]  # fmt: skip
    assert series.classes_by_length(np.array([np.nan])) == []


@given(step_series(), st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_busiest_window_beats_every_other(steps, part):
    length = part * (steps.end_s - steps.time_s[0])
    start, end = series.busiest_window(steps, length)
    assert end - start == pytest.approx(length)
    edges, total = series.area(steps)
    others = np.linspace(edges[0], edges[-1] - length, 50)
    held = np.interp(others + length, edges, total) - np.interp(others, edges, total)
    best = np.interp(end, edges, total) - np.interp(start, edges, total)
    assert best >= held.max() * (1 - 1e-6) - 1e-6


def test_spread_and_ratio():
    assert series.spread(np.array([np.nan])) is None
    assert series.spread(np.arange(101.0)) == (101, 5, 25, 50, 75, 95, 50)
    out = series.ratio(np.array([4.0, 1.0, np.nan]), np.array([2.0, 0.0, 1.0]))
    assert out[0] == 2
    assert np.isnan(out[1:]).all()


# --- the Gantt chart ---------------------------------------------------------------------------------------


def test_bars_never_overlap_and_cover_the_gpus(results):
    chart = gantt.build_gantt(results)
    assert chart.whole
    for bars, result in zip(chart.bars, results, strict=True):
        area = sum(b.lanes * (b.end_s - b.start_s) for b in bars)
        assert area == pytest.approx(result.outcomes.gpu_s.sum())
        by_lane: dict[float, list[tuple[float, float]]] = {}
        for b in bars:
            for lane in range(b.lanes):
                by_lane.setdefault(round(b.low + lane, 6), []).append((b.start_s, b.end_s))
        for spans in by_lane.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_window_shrinks_until_the_bars_can_be_seen(results):
    chart = gantt.build_gantt(results, max_nodes=2, max_bars=50)
    assert len(chart.bands) == 2
    assert not chart.whole
    assert "2 of 4 nodes" in chart.caption()
    assert all(0 < len({(b.job_id, b.start_s) for b in bars}) <= 50 for bars in chart.bars)
    for bars in chart.bars:
        assert all(b.start_s < chart.end_s and b.end_s > chart.start_s for b in bars)


def test_late_starts_keep_their_precision():
    work = Workload(50)
    work.arrival_s = work.arrival_s + 1.5e9
    data = payload([run(uniform_cluster(2), work)])
    assert len(set(data["policies"][0]["queue"]["t"])) > 50
    assert len(set(data["gantt"]["bars"][0]["start"])) > 20


def test_more_policies_than_colours_differ_by_their_dash():
    styles = [policy_style(i) for i in range(20)]
    assert len(set(styles)) == 20
    assert {dash for _, dash in styles[:8]} == {"solid"}


def test_long_names_are_cut_in_the_middle():
    work = Workload(1)
    work.job_id = ["x" * 200]
    data = payload([run(uniform_cluster(2), work)])
    assert len(data["gantt"]["jobs"][0][0]) == 64
