"""What could never run here is refused, in one line."""

from __future__ import annotations

import pytest

from trainyard.model.tenant import Tenant
from trainyard.model.zoo import ZOO
from trainyard.server.faults import FieldError
from trainyard.server.submission.fitting import Surroundings, check_fits, make_job
from trainyard.server.submission.reading import read_wish


def node(name, gpu_type, gpus, cpus=8.0, memory_gb=64.0):
    return {"node": name, "gpu_type": gpu_type, "gpus": gpus, "cpus": cpus, "memory_gb": memory_gb}


NODES = [node("a", "A100", 8), node("b", "A100", 16), node("c", "V100", 8)]
MODELS = {name: entry.profile for name, entry in ZOO.items()}
TENANTS = {"vision": Tenant("vision", limit=4, max_priority=10)}
AROUND = Surroundings(NODES, MODELS, TENANTS, most_grace_s=600.0)


def wish(**fields):
    return read_wish({"command": ["x"], "workdir": "/", **fields})


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"gpus": 64}, "gpus: 64, but the cluster has 32 GPUs; trainyard nodes shows them"),
        (
            {"gpus": {"min": 64, "max": 99}},
            "gpus.min: 64, but the cluster has 32 GPUs; trainyard nodes shows them",
        ),
        (
            {"gpus": 25, "gpu_types": ["A100"]},
            "gpus: 25, but the cluster has 32 GPUs (24 of type A100); trainyard nodes shows them",
        ),
        ({"gpu_types": ["A10"]}, "gpu_types: no node has GPUs of type 'A10'; did you mean 'A100'?"),
        (
            {"model": "resnet5O"},
            "model: unknown model 'resnet5O'; did you mean 'resnet50'? (up --profiles FILE brings others)",
        ),
        ({"tenant": "vision", "gpus": 5}, "gpus: 5, but tenant 'vision' may have 4 GPUs at most"),
        (
            {"tenant": "vision", "priority": 11},
            "priority: 11, but jobs of tenant 'vision' may have 10 at most",
        ),
        (
            {"name": "big", "cpus": 100},
            "cpus: job 'big' asks for 100 CPUs with each of 1 GPUs; the nodes have room for 0 such GPUs, "
            "ask for less",
        ),
        (
            {"name": "big", "gpus": 2, "memory_gb": 256},
            "memory_gb: job 'big' asks for 128 GB with each of 2 GPUs; the nodes have room for 0 such GPUs, "
            "ask for less",
        ),
        ({"grace_s": 601}, "grace_s: 601 is more than 600, the most that this controller gives"),
        ({"servers": 3}, "servers: 3, but every worker has one parameter server: give 1, or leave this out"),
    ],
)
def test_what_never_fits_is_refused(fields, line):
    with pytest.raises(FieldError) as caught:
        check_fits(wish(**fields), AROUND)
    assert str(caught.value) == line
    assert line.startswith(f"{caught.value.field}: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"gpus": 32},
        {"gpus": {"min": 1, "max": 999}},
        {"gpus": 24, "gpu_types": ["A100"]},
        {"tenant": "vision", "gpus": 4, "priority": 10},
        {"tenant": "somebody", "gpus": 32, "priority": 100},
        {"cpus": 8, "memory_gb": 64},
        {"model": "resnet50", "samples": 1e6},
        {"gpus": 2, "servers": 2},
    ],
)
def test_what_fits_is_taken(fields):
    check_fits(wish(**fields), AROUND)


def test_a_job_of_one_size_is_rigid():
    job = make_job(wish(gpus=4, cpus=2), "7", 5.0, AROUND)
    assert (job.job_id, job.arrival_s, job.gpus, job.elastic, job.cpus) == ("7", 5.0, 4, False, 2.0)
    assert job.samples is None
    assert job.duration_s is None  # nobody knows how long it takes
    assert job.terms is not None


def test_a_range_is_elastic_and_begins_with_its_least():
    job = make_job(wish(gpus={"min": 2, "max": 9, "sizes": "powers_of_two"}), "7", 5.0, AROUND)
    assert (job.gpus, job.least_gpus, job.most_gpus, job.sizes) == (2, 2, 8, (2, 4, 8))


def test_terms_are_kept():
    job = make_job(
        wish(retries=3, after=["1"], time_limit_s=9, max_wait_s=8, transient_exit_codes=[4]), "7", 5.0, AROUND
    )
    assert job.terms is not None
    assert (job.terms.retries, job.terms.time_limit_s, job.terms.max_wait_s) == (3, 9.0, 8.0)
    assert (job.terms.after, job.terms.transient_exit_codes) == ({"1": "ok"}, (4,))


def test_servers_are_as_the_user_says_whatever_the_model_has():
    by_itself, asked = make_job(wish(), "7", 0.0, AROUND), make_job(wish(gpus=2, servers=2), "7", 0.0, AROUND)
    assert (by_itself.servers, asked.servers) == (0, 2)
    ring = make_job(wish(model="resnet50", servers=1), "7", 0.0, AROUND)
    assert ring.servers == 1
    served = MODELS | {"served": ring.profile}
    around = Surroundings(NODES, served)
    assert make_job(wish(model="served"), "7", 0.0, around).servers == 1
    assert make_job(wish(model="served", servers=0), "7", 0.0, around).servers == 0
