"""Reservations of a cluster file: through files and back, and each mistake in one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conftest import command, complaint_about
from trainyard.files.cluster import cluster_record, load_cluster, parse_cluster
from trainyard.files.reservation_schema import ReservationEntry
from trainyard.model.cluster import Cluster, Node
from trainyard.model.reservation import Reservation

NODES = "nodes:\n- {count: 2, gpus: 8, gpu_type: V100}\n- {count: 1, gpus: 4, gpu_type: P100}\n"
KEPT = (
    Reservation("r1", 3600.0, 7200.0, ("V100-0",), "vision"),
    Reservation("r2", 0.0, 50.0, gpus=8, gpu_type="V100"),
    Reservation("night", 7200.0, 9000.0, ("V100-0", "P100-0")),
)
WRITTEN = """reservations:
- {nodes: [V100-0], from_s: 3600, to_s: 7200, tenant: vision}
- {gpus: 8, gpu_type: V100, from_s: 0, to_s: 50}
- {nodes: [V100-0, P100-0, V100-0], from_s: 7200, to_s: 9000, name: night, gpus: null}
"""


def test_reservations_are_read_and_written(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NODES + WRITTEN)
    cluster = load_cluster(path)
    assert cluster.reservations == KEPT
    assert parse_cluster(cluster_record(cluster), "here") == cluster


def test_a_cluster_without_them_is_written_without_them(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(NODES)
    assert "reservations" not in cluster_record(load_cluster(path))


def test_nodes_that_get_other_names_in_a_file_get_them_in_reservations_too():
    nodes = (Node("anna", "V100", 4, 12.0, 64.0), Node("berta", "V100", 4, 12.0, 64.0))
    kept = Reservation("r1", 5.0, 6.0, ("berta",), gpus=3)  # chosen for it
    record = cluster_record(Cluster("odd", nodes, reservations=(kept,)))
    assert record["reservations"] == [{"name": "r1", "nodes": ["V100-1"], "from_s": 5.0, "to_s": 6.0}]
    assert parse_cluster(record, "here").reservations == (replace(kept, nodes=("V100-1",), gpus=0),)


def test_those_that_name_nodes_go_first():
    """Else the first one would have taken V100-0."""
    entries = [
        {"gpus": 8, "gpu_type": "V100", "from_s": 0, "to_s": 9},
        {"nodes": ["V100-0"], "from_s": 0, "to_s": 9},
    ]
    data = {"nodes": [{"count": 2, "gpus": 8, "gpu_type": "V100"}], "reservations": entries}
    assert len(parse_cluster(data, "here").reservations) == 2


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ("{nodes: [V100-9], from_s: 0, to_s: 1}", "[0].nodes[0]: unknown node 'V100-9'; did you mean 'V100-"),
        ("{nodes: [], from_s: 0, to_s: 1}", "[0].nodes: a list of 0 is too short; it must be a list of at"),
        ("{nodes: [V100-0], from_s: 2, to_s: 2}", "[0].to_s: 2 is not after from_s; it must be more than 2"),
        ("{nodes: [V100-0], to_s: 2}", "[0].from_s: is missing; it must be a number of at least 0"),
        ("{nodes: [V100-0], from_s: -1, to_s: 2}", "[0].from_s: -1 is too small; it must be a number of at"),
        ("{from_s: 1, to_s: 2}", "[0]: 'nodes' and 'gpus' are both missing; give one of them"),
        (
            "{nodes: [V100-0], gpus: 1, from_s: 1, to_s: 2}",
            "[0]: 'nodes' and 'gpus' are both given; give one of them",
        ),
        (
            "{nodes: [V100-0], gpu_type: V100, from_s: 1, to_s: 2}",
            "[0].gpu_type: it goes with 'gpus'; leave it out, as the nodes are named",
        ),
        ("{gpus: 21, from_s: 1, to_s: 2}", "[0].gpus: 21 is too large; there are 20, reserve at most these"),
        (
            "{gpus: 5, gpu_type: P100, from_s: 1, to_s: 2}",
            "[0].gpus: 5 is too large; there are 4, reserve at most these",
        ),
        (
            "{gpus: 5, gpu_type: K80, from_s: 1, to_s: 2}",
            "[0].gpu_type: no node has GPUs of type 'K80'; known: P100, V100",
        ),
        ("{node: [V100-0], from_s: 1, to_s: 2}", "[0].node: unknown key 'node'; did you mean 'nodes'?"),
        (
            "{nodes: [V100-0], from_s: 1, to_s: 5}, {nodes: [V100-1, V100-0], from_s: 4, to_s: 9}",
            "[1].nodes: reservation r2: node V100-0 is reserved already at that time; take another time",
        ),
        (
            "{gpus: 16, gpu_type: V100, from_s: 1, to_s: 5}, {nodes: [V100-1], from_s: 4, to_s: 9}",
            "[0].gpus: reservation r1: there are not 16 GPUs of type V100 to reserve at that time; take",
        ),
        (
            "{gpus: 1, from_s: 1, to_s: 5, name: r2}, {gpus: 1, from_s: 6, to_s: 9}",
            "[1].name: the name 'r2' is given twice; give each its own",
        ),
    ],
)
def test_reservations_that_cannot_be(tmp_path, entries, what):
    said = complaint_about(tmp_path / "c.yaml", f"{NODES}reservations: [{entries}]\n", load_cluster)
    assert said.startswith(f"c.yaml, line 4, field reservations{what}")


def test_a_mistake_is_the_users_fault(tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text(f"{NODES}reservations: [{{nodes: [V100-0], from_s: 5, to_s: 5}}]\n")
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,9\n")
    given = ("--cluster", tmp_path / "c.yaml", "--jobs", tmp_path / "j.csv", "--policy", "fifo")
    code, out, told = command(monkeypatch, capsys, "simulate", *given)
    assert (code, out, told.count("\n")) == (2, "", 1)
    assert "field reservations[0].to_s: 5 is not after from_s" in told


def test_the_page_of_files_has_every_key():
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    assert [key for key in ReservationEntry.__annotations__ if f"`{key}`" not in page] == []
