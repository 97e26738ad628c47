"""YAML that is odd: one line that says where, whatever the value."""

from __future__ import annotations

import pytest

from trainyard.errors import InputError
from trainyard.files.cluster import load_cluster
from trainyard.files.document import load_document


def told(tmp_path, text):
    path = tmp_path / "d.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_document(path, "data")
    return str(caught.value).removeprefix(str(tmp_path)).lstrip("/")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("!!int ''", "'' cannot be read as a number"),
        ("!!int 0x", "'0x' cannot be read as a number"),
        ("!!int 1:x", "'1:x' cannot be read as a number"),
        ("!!float ''", "'' cannot be read as a number"),
        ("!!float x", "'x' cannot be read as a number"),
        ("!!bool x", "'x' cannot be read as 'tag:yaml.org,2002:bool'"),
        ("!!timestamp x", "'x' cannot be read as a date"),
        ("2001-13-45", "'2001-13-45' cannot be read as a date"),
        ("9" * 5000, "cannot be read as a number; shorten it or put it in quotes"),
    ],
)
def test_a_value_that_is_not_of_its_form_is_told_with_its_line(tmp_path, value, says):
    line = told(tmp_path, f"a: 1\nb:\n  - 2\n  - {value}\n")
    assert line.startswith("d.yaml, line 4: not valid YAML: ")
    assert says in line


def test_an_escaped_character_that_does_not_exist(tmp_path):
    assert "an escaped character in it does not exist" in told(tmp_path, 'a: "\\U99999999"\n')


def test_a_few_aliases_cannot_stand_for_billions_of_values(tmp_path):
    ten = ", ".join(["*x{}"] * 10)
    rows = [f"x{i}: &x{i} [{ten.replace('{}', str(i - 1))}]" for i in range(1, 12)]
    line = told(tmp_path, "\n".join(["x0: &x0 [1, 2]", *rows]))
    assert "more than 10000000 parts; use fewer aliases" in line


def test_aliases_are_allowed(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text("a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n", encoding="utf-8")
    data, _ = load_document(path, "data")
    assert data == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1, "y": 2}}


@pytest.mark.parametrize("value", ["1:00", "12:30:00", "1:00.5", "+1:30", "0:0"])
def test_numbers_to_the_base_of_60_are_text(tmp_path, value):
    """YAML 1.1 takes 1:00 for 60; whoever writes it means a minute, an hour, or a mix of GPUs."""
    path = tmp_path / "d.yaml"
    path.write_text(f"a: {value}\nb: [{value}]\nc: 60\n", encoding="utf-8")
    data, _ = load_document(path, "data")
    assert data == {"a": value, "b": [value], "c": 60}


def test_a_number_must_be_written_as_one(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("nodes:\n  - {count: 1, gpus: 1:00}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2.*gpus.*'1:00' is not a number"):
        load_cluster(path)
