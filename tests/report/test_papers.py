"""Which papers a policy is from."""

from __future__ import annotations

import io

from rich.console import Console

from trainyard.report.papers import papers
from trainyard.report.table import comparison_table


def printed(policies):
    out = io.StringIO()
    rows = [{"policy": name, "avg_jct_s": 60.0} for name in policies]
    Console(file=out, width=80, color_system=None).print(comparison_table(rows, width=80))
    return out.getvalue()


def test_each_paper_once_in_the_order_of_the_stages():
    assert papers("market+tune") == ["Liu et al.", "Synergy"]
    assert papers("srtf+optimus+even") == ["Optimus"]


def test_presets_are_written_out():
    assert papers("synergy") == ["Synergy"]
    assert papers("easy") == []


def test_a_run_may_have_any_name():
    assert papers("mine (2nd try)") == []


def test_the_table_names_papers():
    lines = printed(["srtf", "srtf+tune", "srtf+doubling", "srtf+smd", "srtf+dl2", "market"]).splitlines()
    named = {line.split()[0]: line for line in lines if line.startswith(("srtf", "market"))}
    assert "paper" in lines[1]
    assert "Synergy" in named["srtf+tune"]
    assert "Capes et al." in named["srtf+doubling"]
    assert "SMD" in named["srtf+smd"]
    assert "DL2" in named["srtf+dl2"]
    assert "Liu et al." in named["market"]
    assert named["srtf"].split() == ["srtf", "60.0", "s", "1.00x", *["-"] * (named["srtf"].count("-"))]


def test_without_papers_there_is_no_column_for_them():
    assert "paper" not in printed(["fifo", "srtf"])
