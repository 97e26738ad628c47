"""Tables: cut to the width of the terminal, never wrapped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.cli.shown.table import lines, show

ROWS = [["17", "resnet", "behind 12, 15; 3 GPUs free, needs 4"], ["18", "bert", ""]]


def test_columns_stand_below_each_other():
    assert lines(("JOB", "NAME", "WHY"), ROWS, None) == [
        "JOB  NAME    WHY",
        "17   resnet  behind 12, 15; 3 GPUs free, needs 4",
        "18   bert",
    ]


def test_the_longest_column_is_cut_first():
    assert lines(("JOB", "NAME", "WHY"), ROWS, 30)[1] == "17   resnet  behind 12, 15; .."


@given(st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), max_size=4), st.integers(1, 60))
def test_no_line_is_longer_than_the_terminal_and_no_cell_breaks_it(rows, width):
    shown = lines(("A", "B"), rows, width)
    assert len(shown) == len(rows) + 1
    assert all(len(line) <= width and "\n" not in line for line in shown)


@pytest.mark.parametrize(("columns", "wide"), [("40", 40), ("", None)])
def test_a_pipe_gets_everything_unless_columns_are_given(monkeypatch, capsys, columns, wide):
    monkeypatch.setenv("COLUMNS", columns)
    show(("A",), [["x" * 500]])
    printed = capsys.readouterr().out.splitlines()[1]
    assert len(printed) == (wide or 500)
    assert "\x1b" not in printed
