"""The environment of workers and servers, as they see it themselves."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import pytest

from local_cases import KEY, PLAIN, Bench, benches, member, run_of
from trainyard.live.backends.base import RunKey
from trainyard.live.environment import is_reserved, launches_itself

bench = benches(PLAIN)

TELLS = "env -0 > $C/$TRAINYARD_ROLE$RANK"
OWN = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "CUDA_VISIBLE_DEVICES",
)


def told(bench, name, key=KEY):
    """The environment that a process wrote down."""
    entries = bench.file(name, key).read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


@pytest.fixture
def cluster(tmp_path):
    """Two pretended nodes: the GPUs of the second one come after the four of the first."""
    made = Bench(tmp_path, offsets={"b": 4})
    yield made
    made.close()


def run_everywhere(bench, command=TELLS, **more):
    a = member("a", (1, 3), servers=1)
    b = member("b", (0,), servers=1, first_rank=2, first_server=1)
    bench.start(run_of(command, a, b, **more))
    bench.ended(more.get("key", KEY), "a")
    bench.end_servers(more.get("key", KEY))
    bench.ended(more.get("key", KEY), "b")


def test_ranks_count_workers_over_all_nodes(cluster):
    run_everywhere(cluster)
    seen = [told(cluster, f"worker{rank}") for rank in range(3)]
    assert [each["RANK"] for each in seen] == ["0", "1", "2"]
    assert {each["WORLD_SIZE"] for each in seen} == {"3"}
    assert [each["LOCAL_RANK"] for each in seen] == ["0", "1", "0"]
    assert [each["LOCAL_WORLD_SIZE"] for each in seen] == ["2", "2", "1"]
    assert {each["MASTER_ADDR"] for each in seen} == {"127.0.0.1"}
    assert len({each["MASTER_PORT"] for each in seen}) == 1
    assert 1024 < int(seen[0]["MASTER_PORT"]) < 32768


def test_gpus_are_named_by_index_and_pretended_nodes_by_their_place(cluster):
    run_everywhere(cluster)
    assert [told(cluster, f"worker{rank}")["CUDA_VISIBLE_DEVICES"] for rank in range(3)] == [
        "1,3",
        "1,3",
        "4",
    ]
    assert told(cluster, "server0")["CUDA_VISIBLE_DEVICES"] == ""


def test_servers_count_among_themselves_and_everybody_finds_them(cluster):
    run_everywhere(cluster)
    servers = [told(cluster, f"server{rank}") for rank in range(2)]
    assert [each["RANK"] for each in servers] == ["0", "1"]
    assert {each["WORLD_SIZE"] for each in servers} == {"3"}  # workers only
    everybody = [*servers, *(told(cluster, f"worker{rank}") for rank in range(3))]
    (addresses,) = {each["TRAINYARD_SERVER_ADDRS"] for each in everybody}
    hosts, ports = zip(*(address.split(":") for address in addresses.split(",")), strict=True)
    assert (set(hosts), len({*ports, everybody[0]["MASTER_PORT"]})) == ({"127.0.0.1"}, 3)
    assert {(each["TRAINYARD_WORKERS"], each["TRAINYARD_SERVERS"]) for each in everybody} == {("3", "2")}


def test_our_own_variables(cluster):
    key = RunKey("17", 3)
    run_everywhere(cluster, key=key, lr_scale=1.5)
    worker, server = told(cluster, "worker1", key), told(cluster, "server1", key)
    for seen, role in ((worker, "worker"), (server, "server")):
        assert (seen["TRAINYARD_JOB_ID"], seen["TRAINYARD_ATTEMPT"]) == ("17", "3")
        assert (seen["TRAINYARD_ROLE"], seen["TRAINYARD_LR_SCALE"]) == (role, "1.5")
        assert seen["TRAINYARD_CHECKPOINT_DIR"] == str(cluster.layout.checkpoint("17"))
        assert seen["TRAINYARD_PROGRESS"] == str(cluster.layout.progress(key))
    assert float(worker["TRAINYARD_BATCH_SHARE"]) == pytest.approx(1 / 3)
    assert {name for name in OWN if name not in worker} == set()


def test_a_job_has_its_own_environment_and_not_the_controllers(bench, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_CONTROLLER", "x")
    bench.start(run_of(TELLS, env={"LEARNING": "0.1 $HOME 'x'", "PATH": "/usr/bin:/bin"}))
    bench.ended()
    seen = told(bench, "worker0")
    assert (seen["LEARNING"], seen["PATH"]) == ("0.1 $HOME 'x'", "/usr/bin:/bin")
    assert "SECRET_OF_THE_CONTROLLER" not in seen
    assert os.path.isdir(seen["HOME"])


def test_a_list_is_executed_as_it_is(bench):
    bench.start(run_of(["printf", "%s|", "a b", "$HOME", "*"]))
    bench.ended()
    assert bench.log() == b"a b|$HOME|*|"


@pytest.mark.parametrize(
    "name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "TRAINYARD_X", "CUDA_VISIBLE_DEVICES"]
)
def test_what_we_set_nobody_else_sets(name):
    assert is_reserved(name)
    assert not is_reserved("MY_RANK")


# -- torchrun ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "launches"),
    [
        (["torchrun", "train.py"], True),
        (["/opt/venv/bin/torchrun", "--max-restarts=3", "train.py"], True),
        (["python3", "-m", "torch.distributed.run", "train.py"], True),
        (["python3", "-m", "torch.utils.bottleneck", "train.py"], False),
        (["python3", "torchrun"], False),
        (["/bin/sh", "-c", "torchrun train.py"], False),
        ([], False),
    ],
)
def test_who_starts_the_workers_of_a_node_itself(argv, launches):
    assert launches_itself(argv) is launches


def test_torchrun_is_started_once_a_node_and_told_what_to_start(cluster, tmp_path):
    torchrun = tmp_path / "torchrun"
    torchrun.write_text('#!/bin/sh\nenv -0 > $TRAINYARD_CHECKPOINT_DIR/node$PET_NODE_RANK\necho "$@"\n')
    torchrun.chmod(0o700)
    nodes = member("a", (1, 3)), member("b", (0,), first_rank=2)
    cluster.start(run_of([str(torchrun), "train.py", "--lr", "1"], *nodes))
    ended = [cluster.ended(node=node) for node in ("a", "b")]
    assert [[exit_.rank for exit_ in each.exits] for each in ended] == [[0], [2]]
    seen = [told(cluster, f"node{rank}") for rank in range(2)]
    assert [each["PET_NPROC_PER_NODE"] for each in seen] == ["2", "1"]
    assert {each["PET_NNODES"] for each in seen} == {"2"}
    assert {(each["PET_MASTER_ADDR"], each["PET_RDZV_BACKEND"]) for each in seen} == {("127.0.0.1", "static")}
    assert {each["PET_MASTER_PORT"] for each in seen} == {each["MASTER_PORT"] for each in seen}
    assert [each["CUDA_VISIBLE_DEVICES"] for each in seen] == ["1,3", "4"]
    assert not any("RANK" in each for each in seen)  # torchrun says who is who
    assert cluster.log() == b"train.py --lr 1\n"


def test_what_a_shim_is_told_is_whole(bench):
    bench.start(run_of("exit 0"))
    bench.ended()
    told_ = json.loads((bench.directory() / "run.json").read_text())
    assert (told_["alone"], len(told_["processes"])) == (True, 1)
    assert bench.backend.dry_run(run_of("exit 0", member(gpus=(1, 3), servers=2))) == (
        "n0: 2 workers (GPUs 1,3), 2 servers, 0 CPUs, 0 GB"
    )


def test_starts_at_the_same_time_choose_the_same_ports(bench, monkeypatch):
    """A start that took long is repeated while the first one still chooses."""
    both = Barrier(2)
    chosen = iter(((25_001,), (25_002,)))

    def slow(_):
        with suppress(BrokenBarrierError):
            both.wait(0.5)
        return list(next(chosen))

    monkeypatch.setattr("trainyard.live.backends.local.backend.free_ports", slow)
    run = run_of("true", member())
    bench.backend.layout.attempt(run.key).mkdir(parents=True)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(bench.backend._ports, (run, run))
    assert first == second
