"""`trainyard train` and `trainyard evaluate`: from a teacher to weights that a policy uses; wrong input."""

from __future__ import annotations

import importlib.util
import json

import pytest

from conftest import command
from trainyard.policy.size.dl2.weights import load_weights

W = "w.safetensors"


def refused(monkeypatch, capsys, *words):
    """Make sure that a command ends with exit code 2 and one line, and return the line."""
    code, _, error = command(monkeypatch, capsys, *words)
    assert code == 2
    assert error.startswith("trainyard: error: ")
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("with_torch", [False, True])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "dl3", "--out", W), "did you mean 'dl2'"),
        (("train", "dl2"), "--out is missing"),
        (("train", "dl2", "--out", W), "give either --setting, or --cluster and --jobs"),
        (("train", "dl2", "--out", W, "--setting", "s16e3"), "did you mean 's16e3k'"),
        (("train", "dl2", "--out", f"no/such/{W}", "--setting", "testbed"), "no directory"),
        (("train", "dl2", "--out", "w.txt", "--setting", "testbed"), "ends in .safetensors"),
        (("train", "dl2", "--out", W, "--setting", "testbed", "--teacher", "drv"), "did you mean 'drf'"),
        (("train", "dl2", "--out", W, "--setting", "testbed", "--network", "mlp"), "set, window"),
        (("train", "dl2", "--out", W, "--setting", "testbed", "--decisions", "0"), "above 0"),
        (("train", "dl2", "--out", W, "--cluster", "c.yaml"), "give both"),
    ],
)
def test_wrong_input_to_train(monkeypatch, capsys, tmp_path, words, said, with_torch):
    monkeypatch.chdir(tmp_path)
    find, there = importlib.util.find_spec, object() if with_torch else None
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: there if name == "torch" else find(name, *more)
    )
    assert said in refused(monkeypatch, capsys, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--episodes", "0", "above 0"), ("--policies", "dl2(weights=w)", "no weights 'w'")],
)
def test_wrong_input_to_evaluate(monkeypatch, capsys, tmp_path, option, value, said):
    monkeypatch.chdir(tmp_path)
    assert said in refused(monkeypatch, capsys, "evaluate", "--setting", "testbed", option, value)


@pytest.mark.parametrize("online", [False, True])
def test_without_pytorch_there_is_one_line_that_names_the_extra(monkeypatch, capsys, tmp_path, online):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else find(name, *more)
    )
    words = ("train", "dl2", "--out", tmp_path / "w.safetensors", "--setting", "testbed")
    if online:
        (tmp_path / "c.yaml").write_text("nodes:\n  - {count: 2, gpus: 4}\n")
        (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,60\n")
        words = (
            "simulate",
            "--cluster",
            tmp_path / "c.yaml",
            "--jobs",
            tmp_path / "j.csv",
            "--policy",
            "dl2",
        )
        words += ("--round-s", 60, "--learn-online", tmp_path / "online")
    code, _, error = command(monkeypatch, capsys, *words)
    assert code == 2
    assert error == "trainyard: error: training needs PyTorch; pip install 'trainyard[learn]'\n"


@pytest.mark.torch
def test_from_a_teacher_to_a_policy(monkeypatch, capsys, tmp_path):
    out = tmp_path / "own.safetensors"
    words = ("train", "dl2", "--setting", "testbed", "--teacher", "drf", "--decisions", 3000)
    more = ("--iterations", 1, "--seed", 3, "--out", out, "--log", tmp_path / "log")
    monkeypatch.setattr("trainyard.learn.training.JUDGED", 2)
    monkeypatch.setattr("trainyard.learn.training.VALIDATION", 2)
    code, printed, error = command(monkeypatch, capsys, *words, *more)
    assert (code, error) == (0, "")
    assert f"dl2(weights={out})" in printed
    made = load_weights(str(out)).made
    assert made["seed"] == "3"
    assert made["command"].startswith("trainyard train dl2 --setting testbed --teacher drf")
    assert (tmp_path / "log" / "curves.csv").read_text().startswith("warm-up,")
    policies = f"drf,dl2(weights={out})"
    code, printed, _ = command(
        monkeypatch,
        capsys,
        "evaluate",
        "--setting",
        "testbed",
        "--episodes",
        2,
        "--policies",
        policies,
        "--json",
    )
    rows = json.loads(printed)
    assert [row["policy"] for row in rows] == ["drf", f"dl2(weights={out})"]
    assert all(0 < row["bound_ratio"] <= 1 for row in rows)


def test_evaluate_prints_a_table(monkeypatch, capsys):
    code, printed, _ = command(
        monkeypatch, capsys, "evaluate", "--setting", "testbed", "--episodes", 1, "--policies", "drf,dl2"
    )
    assert code == 0
    assert "1 held-out episodes" in printed
    assert "+0.0%" in printed
