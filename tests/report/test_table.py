"""The tables of the terminal: which columns fit, how names fold, what a summary lists."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from trainyard.report.measures import RARE
from trainyard.report.table import COLUMNS, POLICY_WIDTH, comparison_table, summary_table

SELDOM = ("fallback_share", *RARE)
KEYS = [key for column in COLUMNS for key in column.keys if key != "speedup"]


def row(policy="a", **values):
    return {"policy": policy, **dict.fromkeys(KEYS, 1.0), **dict.fromkeys(SELDOM, 0.0), **values}


def printed(table, width=200):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def headings(table):
    return [str(column.header).replace("\n", " ") for column in table.columns]


def test_all_columns_in_order():
    assert headings(comparison_table([row()], width=200)) == [
        "policy", "avg JCT", "x vs first", "median JCT", "p95 JCT", "p99 JCT", "avg queue", "make- span",
        "GPU use", "preempt/ restart", "fairness avg/max", "Jain index", "decide ms p50/p99",
    ]  # fmt: skip


def test_what_was_left_to_others_is_shown_if_there_was_any():
    rows = [row("fifo"), row("dl2", fallback_share=0.25)]
    table = comparison_table(rows, width=200)
    assert "left to others" in headings(table)
    assert any(line.startswith("dl2") and "25.0%" in line for line in printed(table))
    assert "left to others" not in headings(comparison_table(rows[:1], width=200))


def test_papers_start_on_the_line_of_their_row():
    lines = printed(comparison_table([row("fifo"), row("srtf+market+tune"), row("srtf+tune")], width=60))
    at = next(i for i, line in enumerate(lines) if line.startswith("srtf+market+tune"))
    assert lines[at].split()[1:3] == ["Liu", "et"]
    assert lines[at + 1].split() == ["Synergy"]
    assert lines[at + 2].startswith("srtf+tune")


def test_columns_go_by_rank_when_there_is_less_room():
    """Policy 6 and avg JCT 2 + 6 wide, x vs first 2 + 5, p99 JCT 2 + 6."""
    assert headings(comparison_table([row()], width=13)) == ["policy"]
    assert headings(comparison_table([row()], width=14)) == ["policy", "avg JCT"]
    assert headings(comparison_table([row()], width=20)) == ["policy", "avg JCT"]
    assert headings(comparison_table([row()], width=21)) == ["policy", "avg JCT", "x vs first"]
    assert headings(comparison_table([row()], width=29)) == ["policy", "avg JCT", "x vs first", "p99 JCT"]


@pytest.mark.parametrize("width", range(6, 160, 7))
def test_a_column_is_left_out_only_with_all_of_higher_rank(width):
    shown = set(headings(comparison_table([row()], width=width)))
    ranked = sorted((c for c in COLUMNS if not {*SELDOM} & {*c.keys}), key=lambda c: c.rank)
    kept = [c.heading.replace("\n", " ") in shown for c in ranked]
    assert kept == sorted(kept, reverse=True)


def test_what_is_left_out_is_named():
    assert comparison_table([row()], width=200).caption is None
    assert comparison_table([row()], width=29).caption == (
        "A wider terminal also shows median JCT, p95 JCT, avg queue, makespan, GPU use, preempt/restart, "
        "fairness avg/max, Jain index, decide ms p50/p99"
    )


def test_names_fold_between_their_parts():
    name = "las(queues=2,threshold_gpu_s=3600)+doubling"
    lines = printed(comparison_table([row(name)], width=200))
    assert [line[:POLICY_WIDTH].strip() for line in lines if line.strip()][-3:] == [
        "las(queues=2,",
        "threshold_gpu_s=3600)+",
        "doubling",
    ]


def test_a_name_that_just_fits_is_not_folded():
    exact, longer = "a" * 11 + "+" + "b" * 12, "a" * 11 + "+" + "b" * 13
    assert any(line.startswith(exact) for line in printed(comparison_table([row(exact)])))
    lines = printed(comparison_table([row(longer)]))
    assert not any(longer in line for line in lines)
    assert any(line.startswith("a" * 11 + "+") for line in lines)
    assert any(line.startswith("b" * 13) for line in lines)


def test_papers_have_a_column_of_their_own():
    table = comparison_table([row("fifo"), row("srtf+tune")], width=200)
    assert headings(table)[1] == "paper"
    assert any("Synergy" in line for line in printed(table) if line.startswith("srtf+tune"))


def test_two_measures_share_a_cell_and_each_may_be_the_best():
    rows = [row("a", preemptions=3, restarts=5), row("b", preemptions=4, restarts=2)]
    table = comparison_table(rows, width=200)
    column = next(c for c in table.columns if c.header == "preempt/\nrestart")
    first, second = column.cells
    assert (first.plain, second.plain) == ("3/5", "4/2")
    bold = [[(s.start, s.end) for s in cell.spans if s.style == "bold"] for cell in (first, second)]
    assert bold == [[(0, 1)], [(2, 3)]]


def test_a_summary_lists_only_what_is_known():
    ends = {"done": 1100, "failed": 60, "cancelled": 0, "unfinished": 40}
    lines = printed(summary_table({"policy": "srtf", "jobs": 1200, "outcomes": ends, "avg_jct_s": 90.0}))
    assert [line.split()[:5] for line in lines] == [
        ["policy", "srtf"],
        ["jobs", "done", "1,100", "of", "1,200"],
        ["avg", "JCT", "90.0", "s", "average"],
    ]
    assert lines[1].endswith("  60 failed, 40 unfinished; times are of the 1,160 that ended")
    assert "average completion time" in lines[2]


def test_markup_in_a_name_is_only_text():
    assert "[bold]x" in printed(summary_table({"policy": "[bold]x", "jobs": 0}))[0]
