"""Values of options: what is read, what is refused, and in which words."""

from __future__ import annotations

import math

import pytest
import typer

from trainyard.cli.usage import LARGEST, not_negative, number, positive, wants_suffix, whole
from trainyard.errors import InputError
from trainyard.files.jobs import SUFFIXES


def said(call, *args):
    with pytest.raises((InputError, typer.BadParameter)) as wrong:
        call(*args)
    return str(wrong.value)


def test_numbers_are_read():
    assert [number(text) for text in ("60", "0.5", "1e3", "-2")] == [60, 0.5, 1000, -2]
    assert said(number, "sixty") == "'sixty' is not a number; give one such as 60 or 0.5"


def test_whole_numbers_are_read():
    assert [whole(text) for text in ("42", "-7", "0")] == [42, -7, 0]
    assert said(whole, "4.2") == "'4.2' is not a whole number; give one such as 42"


def test_the_largest_whole_number():
    assert whole(str(LARGEST)) == LARGEST
    assert whole(str(-LARGEST)) == -LARGEST
    assert said(whole, str(LARGEST + 1)) == f"'{LARGEST + 1}' is too large; give at most {LARGEST}"
    assert "too large" in said(whole, str(-LARGEST - 1))


@pytest.mark.parametrize("value", [None, 1e-9, 1, 1e300])
def test_above_zero(value):
    positive("--x", value)
    not_negative("--x", value)


def test_neither_above_zero_nor_zero():
    assert said(positive, "--x", -1.0) == "--x -1: give a number above 0"
    assert said(not_negative, "--x", -1.0) == "--x -1: give 0 or more"


@pytest.mark.parametrize("value", [math.inf, math.nan, -math.inf])
def test_not_finite(value):
    assert said(positive, "--x", value) == f"--x {value:g}: give a finite number above 0"
    assert said(not_negative, "--x", value) == f"--x {value:g}: give a finite number, 0 or more"


@pytest.mark.parametrize("name", ["o.csv", "a/o.CSV", "o.jsonl", "o.json.gz", "/dev/null"])
def test_names_of_files_to_write(name):
    wants_suffix("DST", name, SUFFIXES, ".csv")


@pytest.mark.parametrize("name", ["o.txt", "csv", "o.gz", "o", "", "/dev"])
def test_names_that_say_another_form(name):
    assert said(wants_suffix, "DST", name, SUFFIXES, "X") == f"DST '{name}': give a name that ends in X"


def test_zero_is_not_above_zero():
    not_negative("--x", 0.0)
    assert said(positive, "--x", 0.0) == "--x 0: give a number above 0"


@pytest.fixture
def called(tmp_path, monkeypatch, capsys):
    """Run a command line beside a small cluster and two jobs."""
    from conftest import command

    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("nodes: [{count: 1, gpus: 4}]\n")
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,4,100\nb,10,4,20\n")
    return lambda line: command(monkeypatch, capsys, *line.split())


RUN = "simulate --cluster c.yaml --jobs j.csv"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{RUN} --round-s 0", "--round-s 0: give a number above 0"),
        (f"{RUN} --round-s 0.0099", "--round-s 0.0099: give 0.01 or more, or leave it out"),
        (f"{RUN} --until-s 0", "--until-s 0: give a number above 0"),
        (f"{RUN} --restart-s -1", "--restart-s -1: give 0 or more"),
        (f"{RUN} --start-s inf", "--start-s inf: give a finite number, 0 or more"),
        (f"{RUN} --seed -1", "--seed -1: give 0 or more"),
        (f"{RUN} --mtbf-h 0", "--mtbf-h 0: give a number above 0"),
        (f"{RUN} --mtbf-h 5 --repair-h 0", "--repair-h 0: give a number above 0"),
        (
            f"{RUN} --mtbf-h 5 --failures f.csv",
            "--failures and --mtbf-h exclude each other; give one of them",
        ),
        (f"{RUN} --learn-online d", "--learn-online goes by rounds; give --round-s N, such as 600"),
        ("trace generate x.csv --preset philly --jobs 0", "--jobs 0: give a whole number from 1 to 10000000"),
        (
            "trace generate x.csv --preset philly --jobs 5 --duration-s 9",
            "--duration-s is for --preset poisson; leave it out, a cluster's preset has its own",
        ),
        ("evaluate --episodes 0 --setting testbed", "--episodes 0: give a number above 0"),
        ("evaluate --policies drf", "give either --setting, or --cluster and --jobs"),
        ("evaluate --setting testbed --jobs j.csv", "give either --setting, or --cluster and --jobs"),
        ("evaluate --jobs j.csv", "--cluster and --jobs belong together; give both"),
        ("evaluate --cluster c.yaml --jobs j.csv --slot-s 0", "--slot-s 0: give a number above 0"),
        ("evaluate --cluster c.yaml --jobs j.csv --episode-jobs 9", "--episode-jobs 9: give 10 or more"),
        ("evaluate --cluster c.yaml --jobs j.csv", "2 jobs are too few to learn from; give 50 or more"),
        ("train dl3 --out w", "'dl3' cannot be trained; did you mean 'dl2'?"),
        ("train dl2 --out w --network cnn", "--network 'cnn' is not one of set, window"),
        ("train dl2 --out w --decisions 0", "--decisions 0: give a number above 0"),
        ("train dl2 --out w --iterations -1", "--iterations -1: give 0 or more"),
        ("reproduce synergie", "unknown paper 'synergie'; did you mean 'synergy'?"),
    ],
)
def test_one_line_says_what_would_be_right(called, line, said):
    code, out, err = called(line)
    assert (code, out, err) == (2, "", f"trainyard: error: {said}\n")


def test_the_shortest_round_is_allowed(called):
    code, _, err = called(f"{RUN} --round-s 0.01 --until-s 1 --json")
    assert (code, err) == (0, "")
