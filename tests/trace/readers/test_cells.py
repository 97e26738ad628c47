"""Cells of a trace: numbers, times, and what a bad one is told."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.trace.readers.cells import Row, Source, clock_s, four, headerless, table

COLUMNS = ("id", "at", "size", "lasting")


def row(**cells):
    return Row("t.csv", 7, list(cells.values()), {name: i for i, name in enumerate(cells)})


def source(text):
    return Source("t.csv", text)


def said(call, *args):
    with pytest.raises(InputError) as wrong:
        call(*args)
    return str(wrong.value)


def test_a_cell_of_no_column_is_empty():
    assert row(x=" a ").text("x") == "a"
    assert row(x=" a ").text("y") == ""


@pytest.mark.parametrize(("text", "value"), [("3", 3), (" 2.5 ", 2.5), ("-1e3", -1000), ("0", 0)])
def test_numbers(text, value):
    assert row(x=text).number("x") == value
    assert row(x=text).number("x", 9.0) == value


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_number_has_the_default_or_is_an_error(text):
    assert row(x=text).number("x", 9.0) == 9
    assert row(x=text).number("x", 0.0) == 0
    assert said(row(x=text).number, "x") == "t.csv, line 7, field x: is empty; it must be a number"
    assert row(x="1").number("missing", 4.0) == 4


@pytest.mark.parametrize("text", ["inf", "-inf", "nan"])
def test_numbers_are_finite(text):
    assert said(row(x=text).number, "x") == f"t.csv, line 7, field x: '{text}' is not a finite number"


def test_a_word_is_no_number_even_with_a_default():
    assert said(row(x="many").number, "x", 1.0) == "t.csv, line 7, field x: 'many' is not a number"


def test_long_cells_are_cut_in_the_message():
    assert said(row(x="y" * 99).number, "x") == f"t.csv, line 7, field x: '{'y' * 40}' is not a number"


def test_whole_numbers_may_have_a_point():
    assert row(x="8.0").whole("x") == 8
    assert isinstance(row(x="8.0").whole("x"), int)
    assert row(x="").whole("x", 2) == 2
    assert said(row(x="1.5").whole, "x").endswith("'1.5' is not a whole number")


def test_times():
    assert row(x="1970-01-02 00:00:01").time("x") == 86_401
    assert [row(x=text).time("x") for text in ("", "None", "NaT", "nan", " ")] == [None] * 5
    assert said(row(x="noon").time, "x").endswith("'noon' is not a time such as 2020-06-09 18:41:01")


def test_time_zones_are_left_aside():
    shown = "2023-03-01 00:18:22"
    assert clock_s(shown) == clock_s(f"{shown}+08:00") == clock_s(f"{shown}-05:00")


def test_the_head_of_a_source_leaves_empty_lines_out():
    text = source("\n  \nfirst\n\nsecond\nthird\n")
    assert [line.strip() for line in text.head()] == ["first", "second"]
    assert [line.strip() for line in text.head(1)] == ["first"]


def test_a_table_may_have_more_columns_than_are_needed():
    rows = list(table(source("b,a,c\n1,2,3\n\n4,5,6\n"), ("a", "b")))
    assert [(r.text("a"), r.text("b"), r.line) for r in rows] == [("2", "1", 2), ("5", "4", 4)]


def test_four_columns_in_any_order():
    text = "size,lasting,other,at,id\n2,30,x,5,a\n4.0,60,x,6.5, b \n"
    assert list(four(source(text), COLUMNS)) == [("a", 5.0, 2, 30.0), ("b", 6.5, 4, 60.0)]


@pytest.mark.parametrize(
    ("cells", "field"),
    [
        ("a,x,1,1", "at"),
        ("a,0,x,1", "size"),
        ("a,0,1.5,1", "size"),
        ("a,0,1,", "lasting"),
        ("a,inf,1,1", "at"),
        ("a,0,1,nan", "lasting"),
        ("a,inf,1,-inf", "at"),
    ],
)
def test_the_bad_one_of_four_is_named(cells, field):
    text = f"{','.join(COLUMNS)}\nok,0,1,1\n{cells}\n"
    assert said(list, four(source(text), COLUMNS)).startswith(f"t.csv, line 3, field {field}: ")


def test_tables_without_a_header():
    rows = list(headerless(source("id\tat\n\na\t1\nb\t2\n"), ("id", "at"), "\t"))
    assert [(r.text("id"), r.number("at"), r.line) for r in rows] == [("a", 1, 3), ("b", 2, 4)]
    assert said(list, headerless(source("a,1\nb,2,3\n"), ("id", "at"))) == (
        "t.csv, line 2: 3 cells; every row must have 2: id, at"
    )


def test_a_cell_longer_than_any_is_told_with_its_line():
    with pytest.raises(InputError, match="t, line 2: not valid CSV: field larger than field limit"):
        list(headerless(Source("t", "1,2\n" + "[" * 200_000 + ",4\n"), ("a", "b")))


@pytest.mark.parametrize("text", ["1e16", "-1e300"])
def test_numbers_beyond_reason_are_refused(text):
    (row,) = headerless(Source("t", f"{text},1\n"), ("a", "b"))
    with pytest.raises(InputError, match=r"is not a number of at most 1e\+15"):
        row.number("a")
