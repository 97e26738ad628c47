"""Cluster files: defaults, node ids, and what is refused with which words."""

from __future__ import annotations

import pytest

from conftest import complaint_about
from trainyard.files.cluster import load_cluster, parse_cluster
from trainyard.model.cluster import Cluster, GpuType, Node

CONTRACT = """\
name: lab
gpu_types:
  V100: {speed: 1.0, memory_gb: 32}
  P100: {speed: 0.5, memory_gb: 16}
nodes:
  - {count: 2, gpu_type: V100, gpus: 8, cpus: 24, memory_gb: 500,
     network_gbps: 10, intra_gbps: 100, storage_mbps: 500}
"""
NODES = "nodes:\n  - {count: 1, gpus: 8}\n"


def test_the_example_of_the_contract(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(CONTRACT)
    types = {"V100": GpuType("V100", 1.0, 32.0), "P100": GpuType("P100", 0.5, 16.0)}
    nodes = tuple(Node(f"V100-{i}", "V100", 8, 24.0, 500.0, 10.0, 100.0, 500.0) for i in range(2))
    assert load_cluster(path) == Cluster("lab", nodes, types)


def test_only_count_and_gpus_are_required():
    cluster = parse_cluster({"nodes": [{"count": 1, "gpus": 4}]}, "test")
    assert cluster == Cluster("cluster", (Node("GPU-0", "GPU", 4, 12.0, 250.0, 10.0, 100.0, 500.0),), {})


def test_numbering_continues_over_entries_of_the_same_prefix():
    entries = [
        {"count": 2, "gpus": 1},
        {"count": 1, "gpus": 1, "gpu_type": "K80", "prefix": "rack"},
        {"count": 1, "gpus": 2, "prefix": "GPU"},
        {"count": 1, "gpus": 2, "prefix": "rack"},
    ]
    cluster = parse_cluster({"nodes": entries}, "test")
    assert [node.node_id for node in cluster.nodes] == ["GPU-0", "GPU-1", "rack-0", "GPU-2", "rack-1"]


def test_numbers_with_an_exponent_and_no_point_are_numbers(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("nodes:\n  - {count: 1, gpus: 1, storage_mbps: 1e3}\n")
    assert load_cluster(path).nodes[0].storage_mbps == 1000.0


def test_what_is_null_is_not_given():
    data = {"name": None, "gpu_types": None, "nodes": [{"count": 1.0, "gpus": 1, "cpus": None}]}
    assert parse_cluster(data, "test") == parse_cluster({"nodes": [{"count": 1, "gpus": 1}]}, "test")


def entry(text):
    return f"nodes:\n  - {{count: 1, gpus: 8}}\n  - {{{text}}}\n"


WHOLE = "it must be a whole number from 1 to 1000000"
WRONG = {
    "empty": ("", "c.yaml: the file is empty; it must hold a cluster: name, gpu_types, nodes"),
    "comment": ("# nothing\n", "c.yaml: nothing is not a mapping; it must be written as {key: value}"),
    "text": ("hello", "c.yaml, line 1: 'hello' is not a mapping; it must be written as {key: value}"),
    "list": ("- a", "c.yaml, line 1: a list is not a mapping; it must be written as {key: value}"),
    "no nodes": (
        "name: x\n",
        "line 1, field nodes: is missing; it must be a list of at least one, such as [{count: 4, gpus: 8}]",
    ),
    "zero nodes": (
        "name: x\nnodes: []\n",
        "c.yaml, line 2, field nodes: a list of 0 is too short; it must be a list of at least one, such as [",
    ),
    "nodes number": (
        "name: x\nnodes: 5\n",
        "c.yaml, line 2, field nodes: 5 is not a list; it must be a list of at least one, such as",
    ),
    "node number": (
        "nodes:\n  - 5\n",
        "c.yaml, line 2, field nodes[0]: 5 is not a mapping; it must be written as {key",
    ),
    "no gpus": (entry("count: 4"), f"c.yaml, line 3, field nodes[1].gpus: is missing; {WHOLE}"),
    "no count": (entry("gpus: 4"), f"c.yaml, line 3, field nodes[1].count: is missing; {WHOLE}"),
    "zero count": (
        entry("count: 0, gpus: 8"),
        f"c.yaml, line 3, field nodes[1].count: 0 is too small; {WHOLE}",
    ),
    "text number": (
        entry("count: 4, gpus: '8'"),
        f"c.yaml, line 3, field nodes[1].gpus: '8' is text, not a number: leave out the quotes; {WHOLE}",
    ),
    "bool": (entry("count: yes, gpus: 8"), f"line 3, field nodes[1].count: true is not a number; {WHOLE}"),
    "negative": (entry("count: 4, gpus: -8"), f"line 3, field nodes[1].gpus: -8 is too small; {WHOLE}"),
    "fraction": (
        entry("count: 4, gpus: 2.5"),
        f"line 3, field nodes[1].gpus: 2.5 is not a whole number; {WHOLE}",
    ),
    "1e9 nodes": (
        entry("count: 1000000000, gpus: 8"),
        f"field nodes[1].count: 1000000000 is too large; {WHOLE}",
    ),
    "1e9 gpus": (
        entry("count: 1000, gpus: 1000000"),
        "line 3, field nodes[1].count: the cluster has 1000000008 GPUs so far; it must have at most 1000000",
    ),
    "digits": (
        entry(f"count: {'9' * 5000}, gpus: 1"),
        "c.yaml, line 3: not valid YAML: '99999999999999999999999999999999999",
    ),
    "nan": (
        entry("count: 1, gpus: 1, cpus: .nan"),
        "field nodes[1].cpus: nan is not finite; it must be a number above 0",
    ),
    "inf": (
        entry("count: 1, gpus: 1, memory_gb: .inf"),
        "field nodes[1].memory_gb: inf is not finite; it must be",
    ),
    "zero cpus": (
        entry("count: 1, gpus: 1, cpus: 0"),
        "field nodes[1].cpus: 0 is too small; it must be a number above 0",
    ),
    "word": (
        entry("count: 1, gpus: 1, cpus: many"),
        "field nodes[1].cpus: 'many' is not a number; it must be a number",
    ),
    "list value": (
        entry("count: 1, gpus: 1, cpus: [1]"),
        "field nodes[1].cpus: a list is not a number; it must be a",
    ),
    "near key": (
        entry("count: 1, gpu: 8"),
        "c.yaml, line 3, field nodes[1].gpu: unknown key 'gpu'; did you mean 'gpus'?",
    ),
    "top key": (
        "gputypes: {}\n" + NODES,
        "line 1, field gputypes: unknown key 'gputypes'; did you mean 'gpu_types'?",
    ),
    "far key": ("zzz: 1\n" + NODES, "line 1, field zzz: unknown key 'zzz'; known: gpu_types, name, nodes"),
    "numeric type": (
        entry("count: 1, gpus: 1, gpu_type: 3090"),
        "field nodes[1].gpu_type: 3090 is a number, not text: put it in quotes; it must be one line of text",
    ),
    "numeric type name": (
        "gpu_types:\n  3090: {speed: 2}\n" + NODES,
        "line 2, field gpu_types.3090: the name 3090 is a number, not text: put it in quotes; it must be one",
    ),
    "empty name": (
        "name: ' '\n" + NODES,
        "c.yaml, line 1, field name: ' ' is empty; it must be one line of text such as",
    ),
    "speed": (
        "gpu_types:\n  V100: {memory_gb: 1}\n  K80:\n    speed: 0\n" + NODES,
        "c.yaml, line 4, field gpu_types.K80.speed: 0 is too small; it must be a number above 0",
    ),
    "no speed": (
        "gpu_types:\n  V100:\n" + NODES,
        "line 2, field gpu_types.V100: nothing is not a mapping; it must be",
    ),
    "node key": (entry("count: 1, gpus: 1, 5: 6"), "field nodes[1].5: unknown key '5'; known: count, cpus"),
    "own list": ("nodes: &n [*n]\n", "line 1, field nodes[0]: a list is not a mapping; it must be"),
    "bare speed": (
        "gpu_types:\n  V100: 1.0\n" + NODES,
        "line 2, field gpu_types.V100: 1.0 is not a mapping; it must be",
    ),
    "type key": (
        "gpu_types:\n  V100: {sped: 1}\n" + NODES,
        "field gpu_types.V100.sped: unknown key 'sped'; did you mean '",
    ),
    "twice": (
        f"name: a\n{NODES}name: b\n",
        "c.yaml, line 4: not valid YAML: 'name' is given twice; give it once",
    ),
    "open list": (
        "name: a\nnodes: [\n",
        "c.yaml, line 3: not valid YAML: expected the node content, but found",
    ),
    "tab": (
        "nodes:\n\t- a\n",
        "c.yaml, line 2: not valid YAML: found character '\\t' that cannot start any token",
    ),
    "control": (
        "name: a\nnodes: \x07\n",
        "c.yaml, line 2: not valid YAML: it must not have the character '\\x07'",
    ),
    "list key": ("? [a]\n: 3\n", "c.yaml, line 1: not valid YAML: found unhashable key"),
    "deep": ("[" * 5000, "c.yaml: nested too deeply; a few levels must be enough"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_clusters(tmp_path, case):
    content, message = WRONG[case]
    assert message in complaint_about(tmp_path / "c.yaml", content, load_cluster)
