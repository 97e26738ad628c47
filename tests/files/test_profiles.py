"""Profiles files: every field of the format is read, and what is wrong is named with its line and field."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

import pytest

from conftest import complaint_about
from trainyard.errors import InputError
from trainyard.files.profiles import load_profiles, parse_profile, profile_record
from trainyard.model.profile import Compute, Demand, Input, Layer, Profile, Sync, Tables

EVERY_FIELD = {
    "batch": 256,
    "scaling": "weak",
    "compute": {"fixed_s": 0.002, "per_sample_s": {"V100": 0.0005, "P100": 0.0011}},
    "sync": {"kind": "ps", "mode": "async", "gradient_mb": 98, "latency_s": 5e-5},
    "layers": [{"forward_s": 0.1, "backward_s": 0.2, "mb": 3}],
    "input": {"cpu_s_per_sample": 0.003, "sample_kb": 110, "dataset_gb": 140},
    "tables": {"workers_servers": [[1, 1, 90.5]], "cpu_memory": [[3, 62.5, 80], [6, 62.5, 95]]},
    "worker": {"cpus": 3, "memory_gb": 62.5},
    "server": {"cpus": 2, "memory_gb": 8},
    "restart_s": 11,
}
EXPECTED = Profile(
    *(
        "resnet50",
        256,
        "weak",
        Compute(0.002, {"V100": 0.0005, "P100": 0.0011}),
        Sync("ps", "async", 98.0, 5e-5),
    ),
    *((Layer(0.1, 0.2, 3.0),), Input(0.003, 110.0, 140.0)),
    *(
        Tables(((1.0, 1.0, 90.5),), ((3.0, 62.5, 80.0), (6.0, 62.5, 95.0))),
        Demand(3.0, 62.5),
        Demand(2.0, 8.0),
        11.0,
    ),
)


def test_every_part_of_a_profile(tmp_path):
    path = tmp_path / "profiles.json"
    path.write_text(json.dumps({"resnet50": EVERY_FIELD, "empty": {}}, indent=1))
    assert load_profiles(path) == {"resnet50": EXPECTED, "empty": Profile("empty")}


def test_yaml_with_anchors_and_exponents(tmp_path):
    path = tmp_path / "profiles.yaml"
    path.write_text("a: &base\n  sync: {latency_s: 5e-5}\nb:\n  <<: *base\n  batch: 8\n")
    assert load_profiles(path)["b"] == Profile("b", 8, sync=Sync(latency_s=5e-5))


def test_a_written_profile_reads_back():
    assert parse_profile(profile_record(EXPECTED), "test", name="resnet50") == EXPECTED
    assert profile_record(Profile("x")) == {}


def test_every_field_of_a_profile_may_stand_in_a_file():
    data = {
        part.name: {f.name: getattr(given, f.name) for f in fields(given)}
        for part in fields(Profile)
        if is_dataclass(given := {"sync": Sync(), "compute": Compute(), "input": Input()}.get(part.name))
    }
    data["sync"]["eta"] = list(data["sync"]["eta"])
    assert parse_profile(data, "test") == Profile(sync=Sync(), compute=Compute(), input=Input())


WRONG = {
    "empty": ("", "p.yaml: the file is empty; it must hold profiles by name"),
    "number": ("a: 5\n", "p.yaml, line 1, field a: 5 is not a mapping; it must be written as {key: value}"),
    "numeric name": (
        "5: {}\n",
        "p.yaml, line 1, field 5: the name 5 is a number, not text: put it in quotes",
    ),
    "batch": (
        "a:\n  batch: 2.5\n",
        "line 2, field a.batch: 2.5 is not a whole number; it must be a whole number from 1",
    ),
    "bool": (
        "a:\n  batch: true\n",
        "line 2, field a.batch: true is not a number; it must be a whole number from 1 to",
    ),
    "key": ("a:\n  btach: 2\n", "p.yaml, line 2, field a.btach: unknown key 'btach'; did you mean 'batch'?"),
    "inner key": (
        "a:\n  sync:\n    knd: ps\n",
        "p.yaml, line 3, field a.sync.knd: unknown key 'knd'; did you mean 'kind'?",
    ),
    "choice": (
        "a:\n  sync: {kind: rign}\n",
        "field a.sync.kind: 'rign' is not a choice; it must be 'ring' or 'ps' or 'none'; did you mean '",
    ),
    "choice type": (
        "a:\n  scaling: 3\n",
        "line 2, field a.scaling: 3 is not a choice; it must be 'strong' or 'weak'",
    ),
    "zero time": (
        "a:\n  compute:\n    per_sample_s:\n      V100: 1\n      K80: 0\n",
        "p.yaml, line 5, field a.compute.per_sample_s.K80: 0 is too small; it must be a number above 0",
    ),
    "type name": (
        "a:\n  compute: {per_sample_s: {3090: 1}}\n",
        "field a.compute.per_sample_s.3090: the name 3090 is a number, not",
    ),
    "bare time": (
        "a:\n  compute: {per_sample_s: 1}\n",
        "line 2, field a.compute.per_sample_s: 1 is not a mapping; it",
    ),
    "negative": (
        "a:\n  restart_s: -1\n",
        "line 2, field a.restart_s: -1 is too small; it must be a number of at least 0",
    ),
    "text number": (
        "a:\n  restart_s: '5'\n",
        "line 2, field a.restart_s: '5' is text, not a number: leave out the quotes",
    ),
    "short row": (
        "a:\n  tables:\n    cpu_memory:\n      - [1, 2, 3]\n      - [1, 2]\n",
        "line 5, field a.tables.cpu_memory[1]: a list of 2 is too short; it must be a list of 3 numbers",
    ),
    "flat table": (
        "a:\n  tables: {cpu_memory: [1]}\n",
        "field a.tables.cpu_memory[0]: 1 is not a list; it must be a list of 3 numbers",
    ),
    "row value": (
        "a:\n  tables: {cpu_memory: [[1, 2, .nan]]}\n",
        "field a.tables.cpu_memory[0][2]: nan is not finite; it must be a number of at least 0",
    ),
    "no profile": ("a:\n", "line 1, field a: nothing is not a mapping; it must be written as {key: value}"),
    "both names": ("5: {btach: 1}\n", "p.yaml, line 1, field "),
    "layer": (
        "a:\n  layers:\n    - {forward_s: 1, mb: 2}\n",
        "line 3, field a.layers[0].backward_s: is missing; it must be a number of at least 0",
    ),
    "demand": (
        "a:\n  worker: {cpus: 1}\n",
        "line 2, field a.worker.memory_gb: is missing; it must be a number of at least 0",
    ),
    "name": (
        "a:\n  name: b\n",
        "p.yaml, line 2, field a.name: unknown key 'name'; known: batch, compute, fit, input, layers",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_profiles(tmp_path, case):
    content, message = WRONG[case]
    assert message in complaint_about(tmp_path / "p.yaml", content, load_profiles)


def test_broken_json_is_named_as_such(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"a": {\n  "batch" 8}}')
    with pytest.raises(
        InputError, match=r"p\.json, line 2: not valid JSON: Expecting ':' delimiter at column 11"
    ):
        load_profiles(path)
