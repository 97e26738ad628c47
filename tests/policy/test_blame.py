"""Stages of other packages that raise: one line that names them; our own bugs stay tracebacks."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace

import pytest

import trainyard as ty
from conftest import command, install_package
from trainyard.errors import StageError
from trainyard.policy.grammar import parse_policy

FAULTY = """
import sys
from trainyard import Order, Place, ScoreOrder, Size

class Zero(ScoreOrder):
    def score(self, job): return 1 / 0
class Lost(ScoreOrder):
    def score(self, job): return job.nothing
class Short(ScoreOrder):
    def score(self): return 1
class Nan(ScoreOrder):
    def score(self, job): return float("nan")
class Text(ScoreOrder):
    def score(self, job): return "1"
class Nothing(ScoreOrder):
    def score(self, job): pass
class Leaves(ScoreOrder):
    def score(self, job): sys.exit(3)
class Lines(ScoreOrder):
    def score(self, job): raise RuntimeError("one\\ntwo")
class Refuses(ScoreOrder):
    def __init__(self) -> None: self.table = {}["gone"]
    def score(self, job): return 1
class Quits(ScoreOrder):
    def __init__(self) -> None: sys.exit("no licence")
    def score(self, job): return 1
class Narrow(Order):
    def rank(self): return None
class Nowhere(Place):
    def find(self, request, free, nodes, seed): return nodes.gone
class Sizeless(Size):
    def shapes(self, snapshot, ranked): return snapshot.nodes[0]
class Good(ScoreOrder):
    def score(self, job): return 1
"""
# What each says after the policy, the stage, the package and the entry point.
SAYS = {
    "Zero": "it fails at job 'a' (ZeroDivisionError: division by zero); repair or uninstall the package",
    "Lost": "it fails at job 'a' (AttributeError: 'JobView' object has no attribute 'nothing')",
    "Short": "it fails at job 'a' (TypeError: Short.score() takes 1 positional argument but 2 were given)",
    "Nan": "it fails at job 'a' (order Nan scores job 'a' nan; a score must be a number)",
    "Text": "it fails at job 'a' (order Text scores job 'a' '1'; a score must be a number)",
    "Nothing": "it fails at job 'a' (order Nothing scores job 'a' None; a score must be a number)",
    "Leaves": "it fails at job 'a' (SystemExit: 3)",
    "Lines": "it fails at job 'a' (RuntimeError: one two)",
    "Refuses": "it fails when it is made (KeyError: 'gone')",
    "Quits": "it fails when it is made (SystemExit: no licence)",
    "Narrow": "it fails (TypeError: Narrow.rank() takes 1 positional argument but 2 were given)",
    "Nowhere": "it fails at job 'a' (AttributeError: 'NodeTable' object has no attribute 'gone')",
    "Sizeless": "it fails (TypeError: 'NodeTable' object is not subscriptable)",
}
# Two jobs of which one must wait: else no order is asked.
JOBS = [{"job_id": name, "arrival_s": 0, "gpus": 3, "duration_s": 10} for name in "ab"]
CLUSTER = {"nodes": [{"count": 1, "gpus": 4}]}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Install the package and write the inputs."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "stages_faulty.py").write_text(FAULTY)
    monkeypatch.syspath_prepend(site)
    install_package(site, "faulty", {name.lower(): f"stages_faulty:{name}" for name in [*SAYS, "Good"]})
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "c.yaml").write_text(json.dumps(CLUSTER))
    (work / "j.jsonl").write_text("\n".join(map(json.dumps, JOBS)))
    (work / "s.json").write_text(json.dumps({"now_s": 5, "cluster": CLUSTER, "jobs": JOBS}))
    yield work
    sys.modules.pop("stages_faulty", None)


def asked(verb, policy):
    """Return the words of a command that runs a policy."""
    if verb == "plan":
        return ["plan", "s.json", "--json", "--policy", policy]
    inputs = ["--cluster", "c.yaml", "--jobs", "j.jsonl", "--json", "--out", "a/b"]
    return [verb, *inputs, *(["--policies", f"fifo,{policy}"] if verb == "compare" else ["--policy", policy])]


@pytest.mark.parametrize("verb", ["simulate", "compare", "plan"])
@pytest.mark.parametrize("name", SAYS)
def test_one_line_names_the_stage_the_package_the_policy_and_the_job(name, verb, place, monkeypatch, capfd):
    policy = f"{name.lower()}+tune"
    code, out, err = command(monkeypatch, capfd, *asked(verb, policy))
    where = f"stage '{name.lower()}' of package 'faulty' (entry point stages_faulty:{name})"
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"trainyard: error: policy '{policy}': {where}: {SAYS[name]}")
    assert not (place / "a").exists()


def test_from_python_the_exception_is_the_cause():
    cluster, jobs = ty.uniform_cluster(1, 4), [ty.Job(**job) for job in JOBS]
    for policy in ("zero", "refuses"):
        with pytest.raises(StageError) as caught:
            ty.simulate(cluster, jobs, policy)
        assert isinstance(caught.value.__cause__, ZeroDivisionError | KeyError)


def test_a_stage_without_a_name_raises_what_it_raises():
    cluster, jobs = ty.uniform_cluster(1, 4), [ty.Job(**job) for job in JOBS]
    unnamed = replace(parse_policy("zero"), origins=())
    with pytest.raises(ZeroDivisionError):
        ty.simulate(cluster, jobs, unnamed)


def test_a_bug_of_our_own_stays_a_traceback(monkeypatch, capfd):
    from trainyard.policy.place.spread import Spread

    monkeypatch.setattr(Spread, "find", lambda *asked: 1 / 0)
    for verb in ("simulate", "plan"):
        with pytest.raises(ZeroDivisionError):
            command(monkeypatch, capfd, *asked(verb, "good+spread"))


def test_a_policy_keeps_the_names_of_its_stages_on_the_way_to_a_worker():
    policy = pickle.loads(pickle.dumps(parse_policy("good")))
    ((stage, origin),) = policy.origins
    assert stage is policy.order
    assert "package 'faulty'" in origin
