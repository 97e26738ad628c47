"""What may stand in a submission, field by field."""

from __future__ import annotations

import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.server.faults import FieldError
from trainyard.server.submission.reading import READERS, Size, default_name, read_wish

LEAST = {"command": ["python", "train.py"], "workdir": "/home/ann"}


def wrong(**fields):
    """Return the line and the field of a complaint."""
    with pytest.raises(FieldError) as caught:
        read_wish({k: v for k, v in (LEAST | fields).items() if v is not ...})
    line = str(caught.value)
    assert line.startswith(f"{caught.value.field}: ")
    assert "\n" not in line
    return line


def test_a_command_and_a_directory_are_enough():
    wish = read_wish(LEAST)
    assert (wish.name, wish.gpus, wish.env, wish.priority) == ("python", Size(1, 1), {}, 0)
    assert (wish.time_limit_s, wish.max_wait_s, wish.grace_s) == (inf, inf, None)
    spec = {"command": ["python", "train.py"], "workdir": "/home/ann", "env": {}, "grace_s": None}
    assert wish.spec == spec


def test_every_field_is_read():
    wish = read_wish(
        {
            "name": "resnet-50.a",
            "command": "python train.py | tee log",
            "workdir": "/w",
            "env": {"A": "1", "B": ""},
            "gpus": {"min": 1, "max": 8, "sizes": "powers_of_two"},
            "servers": 1,
            "model": "resnet50",
            "samples": 1000,
            "tenant": "vision",
            "priority": -5,
            "gpu_types": ["V100"],
            "retries": 2,
            "after": ["3", "4"],
            "time_limit_s": 60,
            "max_wait_s": 5.5,
            "grace_s": 0,
            "transient_exit_codes": [3, 4.0],
            "preemptible": False,
            "deadline_s": 1.9e9,
            "user": "ann",
            "request_key": "k",
        }
    )
    assert wish.gpus == Size(1, 8, (1, 2, 4, 8))
    assert wish.spec["command"] == "python train.py | tee log"
    assert (wish.after, wish.transient_exit_codes, wish.grace_s) == (("3", "4"), (3, 4), 0.0)
    assert (wish.user, wish.request_key, wish.preemptible, wish.deadline_s) == ("ann", "k", False, 1.9e9)
    assert (wish.retries, wish.time_limit_s, wish.max_wait_s) == (2, 60.0, 5.5)
    assert (wish.tenant, wish.priority, wish.gpu_types, wish.model) == ("vision", -5, ("V100",), "resnet50")


def test_null_is_not_given():
    assert read_wish(LEAST | {"gpus": None, "name": None}) == read_wish(LEAST)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"gpu": 1}, "gpu: there is no such field; did you mean 'gpus'?"),
        ({"time_limit": 5}, "time_limit: there is no such field; did you mean 'time_limit_s'?"),
        ({"command": ...}, "command: is missing; every job needs it"),
        ({"workdir": ...}, "workdir: is missing; every job needs it"),
        ({"command": []}, "command: is empty; give a program and its arguments"),
        ({"command": [""]}, "command: is empty; give a program and its arguments"),
        ({"command": "  "}, "command: is empty; give a program and its arguments"),
        ({"command": 7}, "command: 7 is no command; give a list of texts, or a text for the shell"),
        ({"command": ["a", 7]}, "command[1]: 7 is not text; give text"),
        (
            {"command": ["a\0b"]},
            "command[0]: there is a character that no program can be given; leave it out",
        ),
        ({"command": "a\ud800"}, "command: there is a character that no program can be given; leave it out"),
        ({"workdir": "here"}, "workdir: 'here' does not begin with /; give the whole path"),
        ({"env": ["A=1"]}, "env: a list does not fit; give names and values"),
        ({"env": {"A": 1}}, "env.A: 1 is not text; give text"),
        ({"env": {"A=": "1"}}, "env: 'A=' is no name of a variable"),
        ({"env": {"": "1"}}, "env: '' is no name of a variable"),
        ({"env": {"RANK": "1"}}, "env.RANK: trainyard sets this variable itself; leave it out"),
        ({"env": {"LOCAL_X": "1"}}, "env.LOCAL_X: trainyard sets this variable itself; leave it out"),
        ({"env": {"TRAINYARD_X": ""}}, "env.TRAINYARD_X: trainyard sets this variable itself; leave it out"),
        ({"gpus": 0}, "gpus: 0 does not fit; give a whole number from 1 to 1000000"),
        ({"gpus": True}, "gpus: true does not fit; give a whole number from 1 to 1000000"),
        ({"gpus": 1.5}, "gpus: 1.5 does not fit; give a whole number from 1 to 1000000"),
        ({"gpus": "2"}, "gpus: '2' does not fit; give a whole number from 1 to 1000000"),
        ({"gpus": {"min": 1}}, "gpus.max: is missing; give min and max"),
        ({"gpus": {"min": 1, "mx": 2}}, "gpus.mx: there is no such field; did you mean 'max'?"),
        ({"gpus": {"min": 3, "max": 2}}, "gpus.min: 3 is more than max 2; it must be at most that"),
        (
            {"gpus": {"min": 3, "max": 3, "sizes": "powers_of_two"}},
            "gpus.sizes: no size from min 3 to max 3 is a power of two",
        ),
        (
            {"gpus": {"min": 3, "max": 3, "sizes": [2]}},
            "gpus.sizes: no size from min 3 to max 3 is in the list",
        ),
        (
            {"gpus": {"min": 3, "max": 3, "sizes": "two"}},
            "gpus.sizes: 'two' does not fit; give a list, powers_of_two or any",
        ),
        (
            {"gpus": {"min": 1, "max": 8}, "cpus": 4},
            "cpus: the job may have 1 to 8 GPUs; this needs a job of one size",
        ),
        (
            {"gpus": {"min": 1, "max": 8}, "memory_gb": 4},
            "memory_gb: the job may have 1 to 8 GPUs; this needs a job of one size",
        ),
        ({"cpus": 0}, "cpus: 0 does not fit; give a number above 0, at most 1e+15"),
        ({"cpus": 1e-300}, "cpus: 1e-300 does not fit; give a number above 0, at most 1e+15"),
        ({"samples": 5}, "samples: nobody knows how fast they are; give model too, or leave this out"),
        ({"samples": "5"}, "samples: '5' does not fit; give a number above 0, at most 1e+24"),
        ({"priority": 101}, "priority: 101 does not fit; give a whole number from -100 to 100"),
        ({"retries": -1}, "retries: -1 does not fit; give a whole number from 0 to 1000000"),
        (
            {"transient_exit_codes": [0]},
            "transient_exit_codes[0]: 0 does not fit; give a whole number from 1 to 255",
        ),
        ({"after": "3"}, "after: '3' is not a list; give a list"),
        ({"grace_s": -1}, "grace_s: -1 does not fit; give a number of at least 0, at most 1e+12"),
        ({"preemptible": 1}, "preemptible: 1 does not fit; give true or false"),
        ({"user": "a\nb"}, "user: 'a\\nb' does not fit; give one line of 1 to 200 characters"),
        ({"tenant": ""}, "tenant: '' does not fit; give one line of 1 to 200 characters"),
        (
            {"gpu_types": ["A100", "V100"]},
            "gpu_types: 2 types; a job can ask for one type, or for any (leave this out)",
        ),
    ],
)
def test_a_mistake_gets_one_line(fields, line):
    assert wrong(**fields) == line


@pytest.mark.parametrize("name", ["17", "-a", ".a", "a/b", "a b", "", "a" * 64, "é"])
def test_names_that_are_none(name):
    assert wrong(name=name).startswith("name: ")


@pytest.mark.parametrize("name", ["a", "17a", "a.b-c_d", "a" * 63])
def test_names(name):
    assert read_wish(LEAST | {"name": name}).name == name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/bin/python3.11", "x"], "python3.11"),
        ("train.sh --lr 1", "train.sh"),
        (["./a b"], "a-b"),
        (["7"], "job"),
        (["é"], "job"),
        (["x" * 100], "x" * 63),
    ],
)
def test_the_name_of_the_program_is_the_default(command, name):
    assert default_name(command) == name
    assert read_wish(LEAST | {"command": command}).name == name


def test_one_size_that_is_left_is_a_job_of_one_size():
    wish = read_wish(LEAST | {"gpus": {"min": 3, "max": 6, "sizes": [1, 4, 8]}, "cpus": 2})
    assert wish.gpus == Size(4, 4)


def test_a_body_that_is_no_object():
    with pytest.raises(FieldError, match=r"body: a list is no job"):
        read_wish([1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(READERS)) | st.text(max_size=5), JSON, max_size=6))
def test_whatever_is_sent_is_read_or_refused_in_one_line(fields):
    try:
        wish = read_wish(LEAST | fields)
    except FieldError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - most bodies are refused
    else:
        json.dumps(wish.spec).encode()
        assert 1 <= wish.gpus.least <= wish.gpus.most
