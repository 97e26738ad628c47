"""Failures files: when which node fails, and for how long."""

from __future__ import annotations

from trainyard.errors import did_you_mean
from trainyard.files.checking import check
from trainyard.files.csv_table import CsvTable
from trainyard.files.reading import StrPath, name_of, read_text
from trainyard.model.cluster import Cluster

COLUMNS = ("time_s", "node", "repair_s")


def load_failures(path: StrPath, cluster: Cluster) -> list[tuple[float, str, float]]:
    """Read (time_s, node, repair_s) of every failure, sorted by time; a header alone means none."""
    from trainyard.files import schemas

    text = read_text(path, f"a header line {','.join(COLUMNS)}")
    node_ids = {node.node_id for node in cluster.nodes}
    found: list[tuple[float, str, float]] = []
    for cells, place in CsvTable(text, name_of(path), COLUMNS, COLUMNS).records(COLUMNS):
        row = check(schemas.FAILURE, cells, place, cells=True)
        node = row["node"]
        if node not in node_ids:
            raise place.error(f"unknown node '{node}'{did_you_mean(node, node_ids)}", "node")
        found.append((row["time_s"], node, row["repair_s"]))
    return sorted(found, key=lambda failure: failure[0])
