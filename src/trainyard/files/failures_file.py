"""Failures files: when which node fails, and for how long."""

from __future__ import annotations

from trainyard.errors import InputError, did_you_mean
from trainyard.files.csv_table import CsvTable
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.files.values import Number, Text
from trainyard.model.cluster import Cluster

COLUMNS = ("time_s", "node", "repair_s")


def load_failures(path: StrPath, cluster: Cluster) -> list[tuple[float, str, float]]:
    """Read (time_s, node, repair_s) of every failure, sorted by time; a header alone means none."""
    text = read_text(path, f"a header line {','.join(COLUMNS)}")
    table = CsvTable(text, name_of(path), COLUMNS, COLUMNS)
    node_ids = {node.node_id for node in cluster.nodes}
    found: list[tuple[float, str, float]] = []
    for line, row in table.rows():
        node = table.need("node", Text("V100-0"), row, line)
        if node not in node_ids:
            what = f"unknown node '{node}'{did_you_mean(node, node_ids)}"
            raise InputError(what, where=table.where, line=line, field="node")
        time_s = table.need("time_s", Number(), row, line)
        found.append((time_s, node, table.need("repair_s", Number(above=True), row, line)))
    return sorted(found, key=lambda failure: failure[0])
