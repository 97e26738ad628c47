"""This machine as a cluster: GPUs as a driver reports them, else virtual slots."""

from __future__ import annotations

import os

import pytest

from trainyard.live import machine
from trainyard.live.machine import memory_bytes, real_gpus, this_machine


@pytest.fixture
def driver(tmp_path):
    """A program that answers as nvidia-smi does."""

    def answers(text, code=0):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
        program.chmod(0o700)
        return (str(program), *machine.QUERY[1:])

    return answers


def test_gpus_are_those_that_the_driver_reports(driver):
    query = driver("NVIDIA A100-SXM4-80GB, 81920\nNVIDIA A100-SXM4-80GB, 81920")
    cluster, said = this_machine(query)
    (node,) = cluster.nodes
    assert (node.gpu_type, node.gpus, node.cpus) == ("NVIDIA-A100-SXM4-80GB", 2, len(os.sched_getaffinity(0)))
    assert cluster.gpu_types[node.gpu_type].memory_gb == pytest.approx(85.9, abs=0.1)
    assert said.endswith(", 2 NVIDIA-A100-SXM4-80GB")
    assert real_gpus(query) == 2


def test_gpus_that_differ_are_said_to_count_as_the_first(driver):
    cluster, said = this_machine(driver("Tesla V100, 16384\nTesla P100, 16384"))
    assert (cluster.nodes[0].gpu_type, cluster.nodes[0].gpus) == ("Tesla-V100", 2)
    assert "all count as the first" in said


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("No devices were found", 6), ("NVIDIA-SMI has failed", 9)],
)
def test_without_gpus_there_are_virtual_slots(driver, text, code):
    cluster, said = this_machine(driver(text, code))
    cpus = len(os.sched_getaffinity(0))
    assert (cluster.nodes[0].gpu_type, cluster.nodes[0].gpus) == ("slot", cpus)
    assert said.endswith(f"no GPU: {cpus} virtual slots")
    assert "\n" not in said


def test_a_gpu_that_does_not_say_its_memory_is_one(driver):
    cluster, _ = this_machine(driver("NVIDIA A100, [N/A]"))
    assert (cluster.nodes[0].gpu_type, cluster.nodes[0].gpus) == ("NVIDIA-A100", 1)


def test_without_a_driver_there_are_virtual_slots(tmp_path):
    assert real_gpus((str(tmp_path / "none"),)) == 0
    assert this_machine((str(tmp_path / "none"),))[0].nodes[0].gpu_type == "slot"


@pytest.mark.parametrize(
    ("own", "file"),
    [
        ("0::/jobs/mine", "jobs/mine/memory.max"),
        ("0::/jobs/mine", "jobs/memory.max"),
        ("0::/", "memory.max"),
        ("9:cpu,cpuacct:/x\n4:memory:/jobs/mine\n0::/", "memory/jobs/mine/memory.limit_in_bytes"),
        ("4:memory:/elsewhere", "memory/memory.limit_in_bytes"),
    ],
)
def test_a_limit_of_memory_is_the_memory_there_is(tmp_path, monkeypatch, own, file):
    monkeypatch.setattr(machine, "OWN", tmp_path / "own")
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "groups")
    everything, limit = memory_bytes(), tmp_path / "groups" / file
    (tmp_path / "own").write_text(own)
    limit.parent.mkdir(parents=True)
    limit.write_text("max\n")
    assert memory_bytes() == everything > 2**20
    limit.write_text("1000000\n")
    assert memory_bytes() == 1_000_000
    limit.write_text("9223372036854771712\n")  # what version 1 says if there is none
    assert memory_bytes() == everything
