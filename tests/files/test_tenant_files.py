"""Tenants of a cluster file; priorities, sizes and the like of a jobs file; through files and back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import complaint, complaint_about
from trainyard.files.cluster import cluster_record, load_cluster, parse_cluster
from trainyard.files.jobs import load_jobs, write_jobs
from trainyard.model.cluster import uniform_cluster
from trainyard.model.job import Job
from trainyard.model.tenant import Tenant

TENANTS = {"vision": Tenant("vision", 4, 6, 2.0, 10), "speech": Tenant("speech")}
CLUSTER = replace(uniform_cluster(1), tenants=TENANTS)
HEADER = "job_id,arrival_s,gpus,duration_s,min_gpus,max_gpus,tenant,user,priority,sizes,preemptible\n"
JOBS = [
    Job("a", 0.0, 2, 9.0, min_gpus=1, max_gpus=6, tenant="vision", user="ann", priority=3, sizes=(1, 2, 4)),
    Job("b", 0.0, 2, 9.0, tenant="speech", priority=-1, preemptible=False),
    Job("c", 0.0, 1, 9.0),
]


def test_a_cluster_with_tenants_comes_back_from_its_record():
    assert parse_cluster(cluster_record(CLUSTER), "here") == CLUSTER
    assert "tenants" not in cluster_record(uniform_cluster(1))


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.jsonl", "jobs.csv.gz"])
def test_jobs_come_back_from_a_file(tmp_path, name):
    write_jobs(tmp_path / name, JOBS)
    assert load_jobs(tmp_path / name, {}, CLUSTER) == JOBS


def test_powers_of_two_are_those_within_the_range(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{HEADER}a,0,4,9,2,6,,,,powers_of_two,\nb,0,4,9,,,,,,8|4|2,true\n")
    first, second = load_jobs(path, {})
    assert (first.sizes, first.least_gpus, first.most_gpus) == ((2, 4), 2, 4)
    assert (second.sizes, second.elastic) == ((4,), False)
    assert [first.allowed(n) for n in range(1, 9)] == [0, 2, 2, 4, 4, 4, 4, 4]
    (tmp_path / "j.jsonl").write_text(
        '{"job_id": 1, "arrival_s": 0, "gpus": 1, "duration_s": 5, "max_gpus": 3, "sizes": "powers_of_two"}'
    )
    assert load_jobs(tmp_path / "j.jsonl", {})[0].sizes == (1, 2)


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (
            ",,vision,,11,,",
            "field priority: job 'a' has priority 11; those of tenant 'vision' must have at most 10",
        ),
        (
            ",,,,1.5,,",
            "field priority: 1.5 is not a whole number; it must be a whole number from -1000000 to",
        ),
        (",,,,,1|x,", "field sizes: '1|x' is not a list; it must be numbers of GPUs such as 1|2|4"),
        (",,,,,1|4,", "field sizes: 7 is missing, but gpus is 7; gpus must be one of the sizes"),
        (",,,,,0|7,", "field sizes[0]: 0 is too small; it must be a whole number from 1 to 1000000"),
        (",,,,,,maybe", "field preemptible: 'maybe' is not a choice; it must be true or false"),
        (
            ",,vision,,,,",
            "field gpus: job 'a' needs 7 GPUs; tenant 'vision' may have 6, ask for at most that",
        ),
    ],
)
def test_jobs_that_make_no_sense(tmp_path, cells, what):
    said = complaint_about(tmp_path / "j.csv", f"{HEADER}a,0,7,9,{cells}\n", load_jobs, {}, CLUSTER)
    assert said.startswith(f"j.csv, line 2, {what}")


@pytest.mark.parametrize(
    ("tenants", "what"),
    [
        (
            "{a: {guaranteed: 5}, b: {guaranteed: 4}}",
            "tenants.b.guaranteed: the tenants up to this one are guaranteed 9 ",
        ),
        (
            "{a: {guaranteed: 5, limit: 4}}",
            "tenants.a.guaranteed: 5 is more than its limit; it must be at most 4",
        ),
        ("{a: {limit: 0}}", "tenants.a.limit: 0 is too small; it must be a whole number from 1 to 1000000"),
        ("{a: {weight: 0}}", "tenants.a.weight: 0 is too small; it must be a number above 0"),
        ("{a: {max: 0}}", "tenants.a.max: unknown key 'max'"),
        (
            "{a: {max_priority: high}}",
            "tenants.a.max_priority: 'high' is not a number; it must be a whole number",
        ),
        ("[a]", "tenants: a list is not a mapping; it must be written as {key: value}"),
    ],
)
def test_tenants_that_make_no_sense(tmp_path, tenants, what):
    text = f"nodes: [{{count: 1, gpus: 8}}]\ntenants: {tenants}\n"
    said = complaint_about(tmp_path / "c.yaml", text, load_cluster)
    assert said.startswith("c.yaml, line 2, field " + what)


def test_a_promise_is_held_against_the_cluster_alone():
    record = {"nodes": [{"count": 1, "gpus": 2}], "tenants": {"a": {"guaranteed": 3}}}
    assert "they must be at most 2, all that the cluster has" in complaint(parse_cluster, record, "here")
