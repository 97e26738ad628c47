"""Tenants and reservations in words, and in the report."""

from __future__ import annotations

from dataclasses import replace

from conftest import checked
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.reservation import Reservation
from trainyard.model.tenant import Tenant
from trainyard.report.html import render_report
from trainyard.report.shared import MOST, shared

TENANTS = {
    "vision": Tenant("vision", 4, 6, 2.0, 10),
    "speech": Tenant("speech"),
    "<b>": Tenant("<b>", 0, None, 1.0, 0),
}
WINDOWS = (
    Reservation("r1", 300.0, 600.0, ("GPU-0", "GPU-1"), "vision"),
    Reservation("r2", 7200.0, 10800.0, gpus=4, gpu_type="GPU"),
    Reservation("r3", 20000.0, 30000.0, gpus=1),
)
CLUSTER = replace(uniform_cluster(2), tenants=TENANTS, reservations=WINDOWS)


def test_what_each_tenant_may_have_and_what_is_reserved():
    said = dict(shared(CLUSTER))
    assert said["tenants"] == (
        "vision: guaranteed 4, limit 6, weight 2, priority at most 10; "
        "speech: nothing guaranteed, no limit; <b>: priority at most 0"
    )
    assert said["reservations"] == (
        "r1: GPU-0, GPU-1 from 5.00 min to 10.0 min for tenant vision; "
        "r2: 4 GPU GPUs from 2.00 h to 3.00 h for nobody (maintenance); "
        "r3: 1 GPUs from 5.56 h to 8.33 h for nobody (maintenance)"
    )


def test_a_plain_cluster_says_nothing():
    assert shared(uniform_cluster(2)) == []


def test_a_long_list_is_cut():
    many = {f"t{i}": Tenant(f"t{i}", limit=1) for i in range(MOST + 3)}
    ((_, said),) = shared(replace(uniform_cluster(1), tenants=many))
    assert said.startswith("t0: limit 1; t1: limit 1;")
    assert said.endswith(f"t{MOST - 1}: limit 1; and 3 more")


def test_the_report_shows_them():
    page = render_report([checked(CLUSTER, [Job("a", 0.0, 1, 10.0, tenant="vision")])])
    assert "<dt>tenants</dt><dd>vision: guaranteed 4, limit 6" in page
    assert "<dt>reservations</dt><dd>r1: GPU-0, GPU-1 from" in page
    assert "&lt;b&gt;: priority at most 0" in page
