"""The public surface: the names of `trainyard`, and that the documentation sends nobody past them."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from itertools import chain
from pathlib import Path

import pytest

import trainyard
from trainyard.model.rules import RuleOptions

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "trainyard"
CLASSES = [
    "Allocation", "BatchEnv", "Chosen", "Cluster", "Draft", "Failure", "GpuType", "InputError", "Job",
    "JobView", "Node", "Order", "Place", "Plan", "PlanError", "Policy", "Profile", "RandomFailures",
    "Request", "Result", "Sample", "Scenario", "ScoreOrder", "Shape", "Shapes", "Share", "Size", "Snapshot",
    "SpeedModel", "Sync", "Tenant", "TrainyardError", "Tune", "ZooEntry",
]  # fmt: skip
RULES = "round_s restart_s start_s seed until_s unknown_durations"
FUNCTIONS = {
    "compare": f"cluster jobs policies failures {RULES}",
    "fit_profile": "samples setting name",
    "generate": "name jobs seed",
    "load_cluster": "path",
    "load_jobs": "path profiles cluster",
    "parse_policy": "text",
    "plan": "snapshot policy",
    "plot_stats": "jobs path_png origin_s",
    "poisson": "jobs seed rate_per_h gpu_mix duration_s",
    "read_trace": "path format",
    "simulate": f"cluster jobs policy failures {RULES}",
    "slot_env": "scenario most_jobs reward encoding",
    "trace_stats": "jobs origin_s",
    "uniform_cluster": "nodes gpus gpu_type name",
    "with_models": "jobs shares seed",
    "write_jobs": "path jobs",
    "zoo": "",
    "zoo_profile": "name",
}
VIEW = (
    "job_id tenant model gpus min_gpus max_gpus gpu_type weight deadline_s "
    "arrival_s now_s remaining_s executed_s attained_gpu_s running"
)
# What users read and run. The page for contributors may name any file.
SHOWN = ("README.md", "docs/*.md", "examples/**/*.md", "examples/**/*.py")
FOR_USERS = sorted({*chain.from_iterable(map(ROOT.glob, SHOWN))} - {ROOT / "docs" / "architecture.md"})
INNER = re.compile(
    rf"\btrainyard\.(?:{'|'.join({path.stem for path in SOURCE.iterdir()} - set(trainyard.__all__))})\b"
)


def test_the_public_names_are_these():
    assert trainyard.__all__ == sorted([*CLASSES, *FUNCTIONS, "__version__"])
    assert set(trainyard.__all__) <= set(dir(trainyard))


def test_every_name_is_loaded_on_demand():
    assert {*trainyard._HOME, "__version__"} == set(trainyard.__all__)


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_every_name_exists_and_is_explained(name):
    public = getattr(trainyard, name)
    assert inspect.isclass(public) is (name in CLASSES)
    assert public.__module__.startswith("trainyard.")
    assert inspect.getdoc(public)
    assert not inspect.getdoc(public).startswith(f"{name}(")  # what a dataclass says of itself


def parameters(function):
    """Names of all parameters, those that are rules one by one."""
    names = list(inspect.signature(function).parameters)
    return [*names[:-1], *RuleOptions.__annotations__] if "rules" in names[-1:] else names


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_they_took(name):
    assert parameters(getattr(trainyard, name)) == FUNCTIONS[name].split()


def test_the_interface_of_orders_stays_valid():
    assert list(trainyard.JobView._fields) == VIEW.split()
    assert list(inspect.signature(trainyard.ScoreOrder.score).parameters) == ["self", "job"]
    assert trainyard.ScoreOrder.__abstractmethods__ == {"score"}


def test_a_policy_has_one_part_for_each_stage():
    assert is_dataclass(trainyard.Policy)
    given = [field.name for field in fields(trainyard.Policy) if field.init]
    assert given == ["name", "order", "size", "place", "tune"]
    assert all(field.name.startswith("_") for field in fields(trainyard.Policy) if not field.init)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'trainyard' has no attribute 'simulat'"):
        _ = trainyard.simulat


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_send_nobody_into_inner_modules(page):
    assert INNER.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text", ["from trainyard.policy.order import Las", "`trainyard.api.plan`"])
def test_inner_modules_are_recognised(text):
    assert INNER.search(text)
    assert not INNER.search(text.replace("trainyard.", "trainyard/"))
    assert not INNER.search("trainyard.simulate, trainyard.stages")
