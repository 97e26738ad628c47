"""Results by tenant in the terminal and in the report."""

from __future__ import annotations

import io
import re

from rich.console import Console

from trainyard.report.tenants import MOST, rows_of, tenant_table, tenants_html


def told(jobs, jct_s, queue_s, gpu_s):
    return {"jobs": jobs, "avg_jct_s": jct_s, "avg_queue_s": queue_s, "gpu_s": gpu_s}


FIFO = {"policy": "fifo", "tenants": {"": told(1, 9.0, 3.0, 3600.0), "x": told(2, 60.0, 30.0, 36_000.0)}}
SRTF = {
    "policy": "srtf+tune",
    "tenants": {"": told(1, 8.0, 4.0, 3600.0), "x": told(2, float("nan"), 20.0, 18_000.0)},
}


def printed(table, width=100):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_one_tenant_needs_no_table():
    alone = {"policy": "fifo", "tenants": {"x": told(3, 1.0, 1.0, 1.0)}}
    for summaries in ([alone], [{"policy": "fifo"}], []):
        assert tenant_table(summaries) is None
        assert tenants_html(summaries) == ""


def test_one_run_has_a_column_for_each_number():
    lines = printed(tenant_table([FIFO]))
    assert lines[:2] == ["By tenant", "tenant jobs avg JCT avg queue GPU-hours"]
    assert lines[3:5] == ["x 2 60.0 s 30.0 s 10.0", "(no tenant) 1 9.00 s 3.00 s 1.00"]


def test_several_runs_have_a_column_each():
    lines = printed(tenant_table([FIFO, SRTF]))
    assert lines[1:3] == ["srtf+", "tenant jobs fifo tune"]
    assert lines[4:6] == ["x 2 60.0 s/30.0 s -/20.0 s", "(no tenant) 1 9.00 s/3.00 s 8.00 s/4.00 s"]
    assert lines[6] == "avg JCT/avg queue"


def test_the_best_of_a_tenant_is_bold():
    cells = [list(column.cells) for column in tenant_table([FIFO, SRTF]).columns][2:]
    bold = [
        [[(span.start, span.end) for span in cell.spans if span.style == "bold"] for cell in column]
        for column in cells
    ]
    assert bold == [[[(0, 6)], [(7, 13)]], [[(2, 8)], [(0, 6)]]]


def test_policies_without_room_are_counted():
    table = tenant_table([FIFO, SRTF, SRTF], width=45)
    assert len(table.columns) == 3
    assert table.caption == "avg JCT/avg queue; a wider terminal also shows 2 more policies"
    assert len(tenant_table([FIFO, SRTF], width=1).columns) == 3


def test_small_tenants_are_left_out_and_counted():
    many = {f"t{i:02d}": told(1, 1.0, 1.0, float(i)) for i in range(MOST + 3)}
    rows = rows_of([{"policy": "p", "tenants": many}])
    assert [row.name for row in rows.shown] == [f"t{i:02d}" for i in range(MOST + 2, 2, -1)]
    assert rows.left_out == "and 3 more tenants with less GPU time; --json has all"
    assert rows.left_out in tenant_table([{"policy": "p", "tenants": many}]).caption


def test_the_section_of_the_report():
    evil = {"policy": "<b>", "tenants": {"<i>": told(1, 1.0, 1.0, 1.0), "y": told(1, 1.0, 1.0, 2.0)}}
    section = tenants_html([evil, evil])
    assert "<b>" not in section
    assert "<i>" not in section
    assert '<th scope="colgroup" colspan="3">&lt;b&gt;</th>' in section
    heads = re.search(r"\n<tr>(.*?)</tr></thead>", section)[1]
    for row in re.findall(r"<tr><th scope=\"row\".*?</tr>", section):
        assert row.count("data-value") == heads.count("<th") == 2 + 2 * 3
    marked = re.findall(r'data-value="([^"]+)" class="best"', tenants_html([FIFO, SRTF]))
    assert marked == ["60.0", "20.0", "3.0", "8.0"]
