"""The demo: its jobs are what the script makes, and every policy of `make demo` can be asked about them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import trainyard as ty
from trainyard.report.papers import papers

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / "examples" / "demo"
POLICIES = re.search(r"^DEMO_POLICIES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split(",")


@pytest.fixture(scope="module")
def demo():
    cluster = ty.load_cluster(DEMO / "cluster.yaml")
    return cluster, ty.load_jobs(DEMO / "jobs.csv", DEMO / "profiles.yaml", cluster)


def test_the_jobs_are_those_that_the_script_makes():
    args = {"capture_output": True, "check": True}
    made = subprocess.run([sys.executable, DEMO / "make_jobs.py"], **args).stdout
    assert made == (DEMO / "jobs.csv").read_bytes()


def test_the_workload_is_mixed(demo):
    cluster, jobs = demo
    assert len({node.gpu_type for node in cluster.nodes}) == 3
    assert {job.max_gpus is None for job in jobs} == {True, False}
    assert {job.profile.serves for job in jobs if job.profile} == {True, False}


def test_plain_policies_stand_beside_all_five_papers():
    cited = {paper for policy in POLICIES for paper in papers(policy)}
    assert {"Synergy", "Capes et al.", "SMD", "DL2", "Liu et al."} <= cited
    assert {"fifo", "easy", "srtf", "las"} <= set(POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_takes_the_demo(demo, policy):
    cluster, jobs = demo
    result = ty.simulate(cluster, jobs[:20], policy, restart_s=30.0)
    assert result.summary()["completed"] == 20
