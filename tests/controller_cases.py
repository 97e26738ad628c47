"""A real controller on a store of its own, whose clock is set by hand and whose intents are only noted."""

from __future__ import annotations

from contextlib import contextmanager

from trainyard.live.clock import SetClock
from trainyard.live.daemon import Options, make_controller
from trainyard.live.store.log import Store
from trainyard.live.store.opening import connect
from trainyard.live.views import Info
from trainyard.model.cluster import Cluster, Node
from trainyard.model.job import Job

TWO_NODES = Cluster("pair", (Node("n0", "V100", 2, 8.0, 64.0), Node("n1", "V100", 2, 8.0, 64.0)))
SPEC = {"command": ["true"], "workdir": "/", "env": {}, "grace_s": None}


@contextmanager
def controller_of(path, clock=None, **options):
    """The controller of a store, new or as it was, with what it found open; it keeps its intents."""
    store = Store(connect(f"sqlite:///{path}"))
    clock = clock or SetClock()
    asked = Options(**{"cluster": TWO_NODES, "policy": "fifo"} | options)
    made = make_controller(store, asked, (TWO_NODES, "fifo"), lambda not_before_s: clock)
    controller = made[0]
    controller.sent = []
    controller.outbox = controller.sent.extend
    try:
        yield controller, made[1]
    finally:
        store.close()


def hand_in(controller, job_id, gpus=1, **more):
    """Submit a job as a client does, and commit it."""
    now = controller.clock.now()
    job = Job(job_id, now, gpus, **{"duration_s": 100.0} | more)
    answer = controller.submit(job, Info(controller.number + 1, job_id, "ann", SPEC, now))
    controller.commit()
    return answer
