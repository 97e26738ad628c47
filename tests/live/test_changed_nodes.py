"""A controller comes back with another cluster file: nodes in use stay as they are, for jobs run there."""

from __future__ import annotations

from dataclasses import replace

from live_cases import TWO_NODES, controller_of, hand_in
from trainyard.core.events import JobFinished
from trainyard.live.adjusting import unlike
from trainyard.model.cluster import Cluster

LARGER = Cluster("pair", tuple(replace(node, memory_gb=128.0) for node in TWO_NODES.nodes))


def nodes_of(controller):
    here = [n for n in controller.yard.cluster.nodes if n.node_id not in controller.yard.conditions.away]
    return {node.node_id: node.memory_gb for node in here}


def test_a_node_on_which_a_job_runs_stays_as_it_was_until_it_is_empty(tmp_path):
    path = tmp_path / "store.db"
    with controller_of(path) as (controller, _):
        hand_in(controller, "a", gpus=2)
        controller.decide()
        controller.commit()
        (on,) = (share.node for share in controller.yard.find("a").occupies.shares)
        (empty,) = {"n0", "n1"} - {on}
    with controller_of(path, cluster=LARGER) as (controller, _):
        controller.commit()
        assert nodes_of(controller) == {on: 64.0, empty: 128.0}
        assert controller.yard.find("a").state.value == "running"
        assert controller.sent == []  # nothing is killed, and nothing started again
        (note,) = unlike(controller.yard, LARGER)
        assert note.startswith(f"node {on} is not as in the cluster file: a runs there")
        controller.tell(JobFinished(5.0, "a", attempt=1))
        controller.commit()
    with controller_of(path, cluster=LARGER) as (controller, _):
        assert nodes_of(controller) == {on: 128.0, empty: 128.0}
        assert unlike(controller.yard, LARGER) == []


def test_a_node_that_is_taken_away_takes_its_jobs_with_it(tmp_path):
    path = tmp_path / "store.db"
    with controller_of(path) as (controller, _):
        hand_in(controller, "a", gpus=2)
        controller.decide()
        controller.commit()
        (on,) = (share.node for share in controller.yard.find("a").occupies.shares)
    rest = Cluster("pair", tuple(node for node in TWO_NODES.nodes if node.node_id != on))
    with controller_of(path, cluster=rest) as (controller, _):
        controller.commit()
        assert [intent.kind for intent in controller.sent] == ["kill", "fence"]
        assert controller.yard.find("a").state.value == "killing"
