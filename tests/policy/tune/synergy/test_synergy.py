"""Synergy's tune stages on small cases with known answers, by function and by command."""

from __future__ import annotations

import json
import sys

import pytest

from trainyard.cli.main import run
from trainyard.core.events import DecisionDue, JobStopped, JobSubmitted
from trainyard.core.instructions import Start, Stop
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.allocation import Allocation, Plan, Share
from trainyard.model.cluster import Cluster, GpuType, Node
from trainyard.model.job import Job
from trainyard.model.profile import Profile, Tables
from trainyard.model.rules import Rules
from trainyard.model.speed.sensitivity import Ladder
from trainyard.model.zoo import zoo_profile
from trainyard.policy.grammar import parse_policy
from trainyard.policy.tune.synergy.share_out import Seat, squeeze
from trainyard.policy.tune.synergy.stage import SynergyTune
from trainyard.sim.clock import Simulator

TUNES = ["tune", "opt"]


def table(*rows, name="table"):
    """A profile whose speed is that of its table, on any GPUs."""
    return Profile(name, scaling="weak", tables=Tables(cpu_memory=rows), restart_s=10.0)


HUNGRY = table((3.0, 62.5, 1.0), (6.0, 62.5, 2.0), name="hungry")  # 3 CPUs per GPU are the proportional share
MODEST = table((1.0, 20.0, 1.0), name="modest")
FORGETFUL = table((3.0, 62.5, 1.0), (3.0, 125.0, 2.0), name="forgetful")  # wants memory


def server(count=1, gpus=2, cpus_per_gpu=3.0):
    made = (Node(f"n{i}", "V100", gpus, cpus_per_gpu * gpus, 62.5 * gpus) for i in range(count))
    return Cluster("c", tuple(made))


def job(name, profile=None, gpus=1, **more):
    return Job(name, 0.0, gpus, samples=1000.0, profile=profile, **more)


def fair(cluster, workers):
    """GPUs by node with their proportional shares."""
    return Allocation(
        tuple(
            Share(n.node_id, gpus, 0, gpus * n.cpus / n.gpus, gpus * n.memory_gb / n.gpus)
            for n in cluster.nodes
            if (gpus := workers.get(n.node_id))
        )
    )


def yard_of(cluster, policy, jobs, held=None, restart_s=None):
    """A yard with these jobs; those in `held` (job -> GPUs by node) run already."""
    first = {name: fair(cluster, workers) for name, workers in (held or {}).items()}
    chosen = parse_policy(policy)

    def decide(snapshot):
        return chosen.decide(snapshot) if snapshot.now_s else Plan(first)

    yard = Yard(cluster, decide, Rules(restart_s=restart_s))
    for each in jobs:
        yard.handle(JobSubmitted(0.0, each))
    yard.handle(DecisionDue(0.0))
    return yard


def decided(cluster, policy, jobs, held=None, restart_s=None):
    """Job -> allocation after one decision, all stops carried out."""
    yard = yard_of(cluster, policy, jobs, held, restart_s)
    for instruction in yard.handle(DecisionDue(1.0)):
        if isinstance(instruction, Stop):
            yard.handle(JobStopped(1.0, instruction.job_id))
    validate(yard)
    return yard.target


def cpus(held):
    return {name: pytest.approx(sum(share.cpus for share in a.shares)) for name, a in held.items()}


def nodes(held):
    return {name: {share.node: share.gpus for share in a.shares} for name, a in held.items()}


# -- TUNE: shares -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tune", TUNES)
def test_what_a_modest_job_does_not_need_goes_to_a_hungry_one(tune):
    held = decided(server(), f"fifo+{tune}", [job("modest", MODEST), job("hungry", HUNGRY)])
    assert cpus(held) == {"modest": 1, "hungry": 5}


@pytest.mark.parametrize("tune", TUNES)
def test_a_job_that_nothing_is_known_of_keeps_its_share(tune):
    held = decided(server(), f"fifo+{tune}", [job("plain"), job("hungry", HUNGRY)])
    assert cpus(held) == {"plain": 3, "hungry": 3}


@pytest.mark.parametrize("tune", TUNES)
def test_what_a_user_asked_for_is_neither_cut_nor_raised(tune):
    asks = job("asks", HUNGRY, cpus=2.0, memory_gb=30.0)
    held = decided(server(), f"fifo+{tune}", [asks, job("hungry", HUNGRY)])
    assert cpus(held) == {"asks": 2, "hungry": 4}
    assert held["asks"].shares[0].memory_gb == 30.0


def test_only_the_job_that_wants_memory_gets_it():
    held = decided(server(), "fifo+tune", [job("modest", MODEST), job("forgetful", FORGETFUL)])
    assert held["forgetful"].shares[0].memory_gb == pytest.approx(125 - 20)
    assert cpus(held) == {"modest": 1, "forgetful": 3}


def test_a_running_job_is_retuned_where_it_is_when_company_comes_and_goes():
    cluster, policy = server(), parse_policy("fifo+tune")
    jobs = [Job("first", 0.0, 1, samples=100.0, profile=HUNGRY)]
    jobs += [Job("second", 10.0, 1, samples=10.0, profile=HUNGRY)]
    result = Simulator(cluster, jobs, policy, Rules(restart_s=1000.0)).run()
    # At 2.0/s for 10 s, at 1.0/s while the other has its share, at 2.0/s again.
    assert result.outcomes.finish_s.tolist() == pytest.approx([10 + 10 + 70 / 2, 20])
    assert result.summary()["restarts"] == 0


def test_gangs_share_their_nodes_by_gpus():
    gang = job("gang", HUNGRY, gpus=2)
    held = decided(server(2), "fifo+spread+tune", [gang, job("modest", MODEST), job("other", MODEST)])
    assert nodes(held)["gang"] == {"n0": 1, "n1": 1}
    assert [share.cpus for share in held["gang"].shares] == pytest.approx([5, 5])


def test_a_gang_takes_no_more_than_its_poorest_node_can_give():
    # On n1 there is nothing to spare, so more on n0 would be of no use and stays for the other job there.
    gang, hungry = job("gang", HUNGRY, gpus=2), job("hungry", HUNGRY)
    seats = {"gang": {"n0": 1, "n1": 1}, "hungry": {"n0": 1}, "plain": {"n1": 1}}
    held = decided(server(2), "fifo+tune", [gang, hungry, job("plain")], seats, restart_s=1e9)
    assert [share.cpus for share in held["gang"].shares] == pytest.approx([3, 3])
    assert cpus(held)["hungry"] == 3


@pytest.mark.parametrize("tune", TUNES)
def test_a_last_step_of_memory_alone_does_not_hide_the_cpus_below(tune):
    """Both jobs end their ladders with a step of memory only, and the node is short of CPUs.

    Fails as long as `squeeze` looks no further than the next rung: that step frees no CPUs, so nobody is a
    victim and the plan over-allocates the node (PlanError).
    """
    both = table((3.0, 20.0, 1.0), (3.0, 40.0, 1.0), (6.0, 20.0, 1.9), (6.0, 40.0, 2.0))
    held = decided(server(), f"fifo+{tune}", [job("a", both), job("b", both)])
    assert sum(share.cpus for allocation in held.values() for share in allocation.shares) <= 6 + 1e-6


def test_a_shortage_of_next_to_nothing_is_still_a_shortage():
    """2 x 250.000005 GB on 500 GB. Fails as long as a place 1e-7 below a rung is taken for the rung."""
    wants = table((3.0, 62.5, 1.0), (3.0, 250.000005, 2.0))
    held = decided(server(1, 8), "fifo+tune", [job("a", wants), job("b", wants)])
    assert sum(share.memory_gb for a in held.values() for share in a.shares) <= 500 + 1e-6


def test_cpus_of_a_job_that_is_still_stopping_are_not_given_away():
    """The target may be ahead of what jobs hold; what they hold must fit.

    Fails as long as a Retune that grows is carried out before the job whose CPUs it takes has stopped.
    """
    seats = {"long": {"n0": 1}, "stays": {"n0": 1}}
    long = Job("long", 0.0, 1, samples=1e6, profile=HUNGRY)
    jobs = [long, job("stays", HUNGRY), Job("small", 0.0, 1, samples=1.0, profile=MODEST)]
    yard = yard_of(server(), "srtf+tune", jobs, seats)
    yard.handle(DecisionDue(1.0))
    assert cpus(yard.target) == {"stays": 5, "small": 1}
    validate(yard)  # `long` is stopping and holds its 3 CPUs
    out = yard.handle(JobStopped(1.0, "long"))
    assert "small" in [i.job_id for i in out if isinstance(i, Start)]
    validate(yard)


# -- TUNE: sharing out one node ---------------------------------------------------------------------------


def ladder(*rungs, between=True):
    """Rungs (cpus, memory, speed)."""
    return Ladder(*zip(*rungs, strict=True), (between,) * (len(rungs) - 1))


def squeezed(*ladders):
    places = [float(each.top) for each in ladders]
    squeeze([Seat(each, 1 / len(ladders)) for each in ladders], places)
    return places


FLAT = ladder((1.0, 1.0, 1.0))
STEEP = ladder((1.0, 1.0, 1.0), (2.0, 1.0, 3.0))
GENTLE = ladder((1.0, 1.0, 1.0), (2.0, 1.0, 1.5))
THRIFTY = ladder((0.5, 1.0, 1.0))


def test_who_loses_least_gives_way():
    assert squeezed(STEEP, GENTLE, THRIFTY, THRIFTY) == [1.0, 0.0, 0.0, 0.0]


def test_only_as_much_is_taken_as_is_missing():
    assert squeezed(STEEP, GENTLE, THRIFTY, ladder((0.25, 1.0, 1.0))) == pytest.approx([1.0, 0.25, 0, 0])


def test_where_one_cannot_stop_on_the_way_a_whole_step_is_taken():
    stepwise = ladder((1.0, 1.0, 1.0), (2.0, 1.0, 1.5), between=False)
    assert squeezed(STEEP, stepwise, THRIFTY, ladder((0.25, 1.0, 1.0))) == [1.0, 0.0, 0.0, 0.0]


def test_useless_victims_are_left_alone():
    memory = ladder((1.0, 0.5, 1.0), (1.0, 1.0, 1.001))
    assert squeezed(STEEP, GENTLE, THRIFTY, memory) == pytest.approx([0.5, 0.0, 0.0, 1.0])


def test_both_resources_short():
    memory = ladder((0.5, 1.0, 1.0), (0.5, 2.0, 3.0))
    places = squeezed(STEEP, GENTLE, memory, ladder((0.5, 1.0, 1.0), (0.5, 2.0, 1.5)))
    assert places == [1.0, 0.0, 0.0, 0.0]


# -- TUNE: seats --------------------------------------------------------------------------------------------

APART = {"h1": {"n0": 1}, "h2": {"n0": 1}, "m1": {"n1": 1}, "m2": {"n1": 1}}
FOUR = [job("h1", HUNGRY), job("h2", HUNGRY), job("m1", MODEST), job("m2", MODEST)]


def on(held, node):
    return sorted(name for name, where in nodes(held).items() if node in where)


@pytest.mark.parametrize("tune", TUNES)
def test_a_hungry_job_changes_seats_with_a_modest_one(tune):
    held = decided(server(2), f"fifo+{tune}", FOUR, APART, restart_s=0.0)
    for node in ("n0", "n1"):
        assert [name[0] for name in on(held, node)] == ["h", "m"]
    assert cpus(held) == {"h1": 5, "h2": 5, "m1": 1, "m2": 1}


@pytest.mark.parametrize("tune", TUNES)
def test_it_moves_to_a_free_seat_too(tune):
    seats = {name: where for name, where in APART.items() if name != "m2"}
    held = decided(server(2), f"fifo+{tune}", FOUR[:3], seats, restart_s=0.0)
    assert sorted(map(len, (on(held, "n0"), on(held, "n1")))) == [1, 2]
    assert sum(share.cpus for a in held.values() for share in a.shares) == pytest.approx(6 + 5 + 1)


@pytest.mark.parametrize("tune", TUNES)
def test_nothing_that_runs_moves_if_the_restart_costs_more_than_it_brings(tune):
    # Each hungry job gains 2/3 in speed for the 1000 s that it runs.
    held = decided(server(2), f"fifo+{tune}", FOUR, APART, restart_s=5000.0)
    assert nodes(held) == APART
    assert cpus(held) == {"h1": 3, "h2": 3, "m1": 1, "m2": 1}


@pytest.mark.parametrize("tune", TUNES)
def test_it_moves_if_the_restart_costs_less(tune):
    held = decided(server(2), f"fifo+{tune}", FOUR, APART, restart_s=100.0)
    assert cpus(held) == {"h1": 5, "h2": 5, "m1": 1, "m2": 1}


@pytest.mark.parametrize("tune", TUNES)
def test_newcomers_are_seated_for_nothing(tune):
    held = decided(server(2), f"fifo+{tune}", FOUR, restart_s=1e9)
    assert cpus(held) == {"h1": 5, "h2": 5, "m1": 1, "m2": 1}


@pytest.mark.parametrize("tune", TUNES)
def test_newcomers_leave_those_that_run_where_they_are(tune):
    seats = {"h1": {"n0": 1}}
    held = decided(server(2), f"fifo+{tune}", FOUR, seats, restart_s=1e9)
    assert nodes(held)["h1"] == {"n0": 1}
    assert nodes(held)["h2"] == {"n1": 1}
    assert cpus(held) == {"h1": 5, "h2": 5, "m1": 1, "m2": 1}


@pytest.mark.parametrize("tune", TUNES)
def test_gangs_change_seats_as_a_whole(tune):
    jobs = [job(name, HUNGRY if name[0] == "h" else MODEST, gpus=2) for name in ("h1", "h2", "m1", "m2")]
    seats = {name: dict.fromkeys(where, 2) for name, where in APART.items()}
    held = decided(server(2, 4), f"fifo+{tune}", jobs, seats, restart_s=0.0)
    assert all(len(where) == 1 and set(where.values()) == {2} for where in nodes(held).values())
    assert cpus(held) == {"h1": 10, "h2": 10, "m1": 2, "m2": 2}


@pytest.mark.parametrize("tune", TUNES)
def test_a_gang_on_several_nodes_stays(tune):
    jobs = [job("gang", HUNGRY, gpus=2), job("h1", HUNGRY), job("m1", MODEST)]
    seats = {"gang": {"n0": 1, "n1": 1}, "h1": {"n0": 1}, "m1": {"n1": 1}}
    held = decided(server(2), f"fifo+{tune}", jobs, seats, restart_s=0.0)
    assert nodes(held)["gang"] == seats["gang"]


@pytest.mark.parametrize("tune", TUNES)
def test_seats_are_changed_only_between_like_nodes(tune):
    like, unlike = server(2).nodes[0], Node("n1", "V100", 2, 8.0, 125.0)
    held = decided(Cluster("c", (like, unlike)), f"fifo+{tune}", FOUR, APART, restart_s=0.0)
    assert nodes(held) == APART


@pytest.mark.parametrize("tune", TUNES)
@pytest.mark.parametrize("names", [("asks", "h1", "h2"), ("h1", "asks", "h2")])
def test_who_asks_for_much_is_not_moved_where_it_does_not_fit(tune, names):
    """All CPUs of a node belong to `asks`; the two others share the other node.

    Fails as long as jobs with CPUs of their own choice take part in changing seats (PlanError).
    """
    jobs = {"asks": job("asks", cpus=6.0, memory_gb=10.0), "h1": job("h1", HUNGRY), "h2": job("h2", HUNGRY)}
    held = decided(server(2), f"fifo+{tune}", [jobs[name] for name in names])
    assert cpus(held) == {"asks": 6, "h1": 3, "h2": 3}


@pytest.mark.parametrize("policy", ["fifo+tune", "fifo", "srtf"])
def test_who_asks_for_much_leaves_no_room_on_its_node_in_the_same_decision(policy):
    """Fails with `proportional` as long as places believe that free GPUs mean free CPUs (PlanError)."""
    held = decided(server(), policy, [job("asks", cpus=6.0), job("plain")])
    assert cpus(held) == {"asks": 6}


def test_a_gang_on_unlike_nodes_gets_on_each_what_it_asked_for():
    """Fails as long as what was asked for is spread in proportion to the nodes (PlanError)."""
    cluster = Cluster("c", (Node("a", "V100", 2, 6.0, 125.0), Node("b", "V100", 2, 12.0, 125.0)))
    jobs = [job("gang", gpus=2, cpus=12.0), job("plain", gpu_type="V100")]
    held = decided(cluster, "fifo+spread+tune", jobs)
    assert [share.cpus for share in held["gang"].shares] == pytest.approx([6, 6])
    assert nodes(held)["plain"] == {"b": 1}


# -- GREEDY -------------------------------------------------------------------------------------------------


def test_greedy_waits_for_the_best_case_demand_while_gpus_idle():
    held = decided(server(), "fifo+greedy", [job("h1", HUNGRY), job("h2", HUNGRY)])
    assert cpus(held) == {"h1": 6}
    held = decided(server(), "fifo+tune", [job("h1", HUNGRY), job("h2", HUNGRY)])
    assert cpus(held) == {"h1": 3, "h2": 3}


@pytest.mark.parametrize("order", ["srtf", "las", "fifo(fill=greedy)", "sjf(fill=greedy)", "fifo(fill=easy)"])
def test_greedy_lets_a_modest_job_pass_a_hungry_one(order):
    """Fails under fill=greedy as long as jobs of as many GPUs are given up once one of them did not fit."""
    jobs = [job("h1", HUNGRY), job("h2", HUNGRY), job("m1", MODEST)]
    held = decided(server(1, 2, 3.5), f"{order}+greedy", jobs)
    assert cpus(held) == {"h1": 6, "m1": 1}


def test_greedy_leaves_jobs_alone_that_say_or_know_nothing():
    held = decided(server(), "fifo+greedy", [job("asks", HUNGRY, cpus=1.0), job("plain")])
    assert cpus(held) == {"asks": 1, "plain": 3}


def test_greedy_never_starves_a_job_that_the_cluster_can_hold():
    """The job fits on the K80s only; fails as long as its demand is that on the fastest node."""
    types = {"V100": GpuType("V100", 1.0), "K80": GpuType("K80", 0.25)}
    cluster = Cluster("c", (Node("v", "V100", 1, 24.0, 500.0), Node("k", "K80", 4, 8.0, 100.0)), types)
    jobs = [Job("a", 0.0, 2, 100.0, profile=zoo_profile("alexnet"))]
    assert Simulator(cluster, jobs, parse_policy("fifo+greedy")).run().summary()["completed"] == 1


def test_greedy_never_starves_a_job_that_needs_unlike_nodes():
    """Fails as long as every node must give as much per GPU as the largest one has."""
    cluster = Cluster("c", (Node("a", "V100", 4, 12.0, 250.0), Node("b", "V100", 4, 4.0, 100.0)))
    jobs = [Job("a", 0.0, 8, 100.0, profile=zoo_profile("alexnet"))]
    assert Simulator(cluster, jobs, parse_policy("fifo+greedy")).run().summary()["completed"] == 1


# -- names and commands -------------------------------------------------------------------------------------


def test_synergy_is_srtf_with_tune():
    assert isinstance(parse_policy("synergy").tune, SynergyTune)
    assert type(parse_policy("synergy").order) is type(parse_policy("srtf").order)
    with pytest.raises(InputError, match="both fill the tune stage"):
        parse_policy("fifo+tune+proportional")
    with pytest.raises(InputError, match="both fill the tune stage"):
        parse_policy("synergy+opt")


CLUSTER = "name: lab\nnodes:\n  - {count: 1, gpus: 2, gpu_type: V100}\n"
JOBS = "job_id,arrival_s,gpus,duration_s,model\nhungry,0,1,1000,resnet18\nmodest,0,1,1000,lstm\n"
RUNS = {"job_id": "hungry", "arrival_s": 0, "gpus": 1, "duration_s": 1000, "model": "resnet18"}
SNAPSHOT = {
    "now_s": 50,
    "cluster": {"nodes": [{"count": 1, "gpus": 2, "gpu_type": "V100"}]},
    "jobs": [
        RUNS | {"allocation": {"V100-0": {"gpus": 1}}},
        {"job_id": "modest", "arrival_s": 5, "gpus": 1, "duration_s": 1000, "model": "lstm"},
    ],
}


@pytest.fixture
def command(tmp_path, capfd, monkeypatch):
    """Run a command in this process and return what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    (tmp_path / "s.json").write_text(json.dumps(SNAPSHOT))

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["trainyard", *args])
        run()
        return capfd.readouterr()

    return call


def simulated(command, policy):
    inputs = ("--cluster", "c.yaml", "--jobs", "j.csv", "--policy", policy)
    return json.loads(command("simulate", *inputs, "--json").out)


@pytest.mark.parametrize("policy", ["srtf+tune", "synergy", "srtf+opt"])
def test_simulate(command, policy):
    summary = simulated(command, policy)
    assert summary["policy"] == policy
    # 5 of the 6 CPUs make resnet18 1.53 times as fast.
    assert summary["avg_jct_s"] == pytest.approx((1000 / 1.53 + 1000) / 2)
    assert simulated(command, "srtf")["avg_jct_s"] == pytest.approx(1000)


def test_simulate_greedy(command):
    assert simulated(command, "srtf+greedy")["makespan_s"] == pytest.approx(1000 + 1000 / 1.75)


def test_plan_shows_cpus_and_memory(command):
    answer = json.loads(command("plan", "s.json", "--policy", "srtf+tune", "--json").out)
    hungry, modest = (answer["plan"][name]["nodes"]["V100-0"] for name in ("hungry", "modest"))
    assert (hungry["gpus"], hungry["cpus"], hungry["memory_gb"]) == pytest.approx((1, 5, 62.5))
    assert (modest["gpus"], modest["cpus"], modest["memory_gb"]) == pytest.approx((1, 1, 20))


def test_one_stage_twice_is_refused(command, capfd):
    with pytest.raises(SystemExit) as stopped:
        command("simulate", "--cluster", "c.yaml", "--jobs", "j.csv", "--policy", "fifo+tune+proportional")
    assert stopped.value.code != 0
    assert "both fill the tune stage" in capfd.readouterr().err


def test_plan_tunes_jobs_that_run_already(tmp_path):
    """Nobody starts or stops, and still the hungry one gets what the modest one does not need."""
    from trainyard import api

    running = {"V100-0": {"gpus": 1}}
    jobs = [
        {"job_id": name, "arrival_s": 0, "gpus": 1, "duration_s": 5000, "model": model, "allocation": running}
        for name, model in (("hungry", "alexnet"), ("modest", "gnmt"))
    ]
    cluster = {"nodes": [{"count": 1, "gpus": 2, "gpu_type": "V100", "cpus": 6, "memory_gb": 125}]}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"now_s": 50, "cluster": cluster, "jobs": jobs}))
    for policy in ("fifo+tune", "srtf+opt"):
        plan = api.plan(path, parse_policy(policy))["plan"]
        assert plan["hungry"]["nodes"]["V100-0"]["cpus"] == pytest.approx(5.0)


@pytest.mark.parametrize("tune", ["proportional", "tune", "opt", "greedy"])
def test_a_profile_without_any_speed_is_refused(tune):
    still = job("a", table((3.0, 62.5, 0.0), (6.0, 62.5, 0.0)))
    [ignored] = Yard(server(), parse_policy(f"fifo+{tune}").decide).handle(JobSubmitted(0.0, still))
    assert "0 samples/s" in ignored.why


@pytest.mark.parametrize("tune", TUNES)
def test_backfilling_counts_on_cpus_that_others_give_back(tune):
    """A free GPU's CPUs are lent to the hungry job beside it: a short job still passes the wide one."""
    cluster = Cluster("c", (Node("n0", "V100", 2, 6.0, 125.0), Node("n1", "V100", 8, 24.0, 500.0)))
    jobs = [
        Job("wide", 0.0, 8, 60.0),
        Job("hungry", 0.0, 1, 300.0, profile=HUNGRY),
        Job("head", 5.0, 8, 60.0),
        Job("short", 10.0, 1, 90.0),
    ]
    outcomes = Simulator(cluster, jobs, parse_policy(f"easy+{tune}")).run().outcomes
    started = dict(zip(outcomes.job_id, outcomes.start_s.tolist(), strict=True))
    assert (started["head"], started["short"]) == (60.0, 10.0)
