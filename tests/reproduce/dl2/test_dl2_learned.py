"""The learned part of `reproduce dl2`, from tasks to pictures, with trainings of a few seconds."""

from __future__ import annotations

import pytest

from trainyard.learn.settings.paper_jobs import SETTINGS
from trainyard.reproduce.dl2 import learned
from trainyard.reproduce.dl2.learning import Learning

TINY = (("rows", 4), ("group", 2), ("decisions", 24), ("leg", 1), ("minibatch", 32), ("validate", 1))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr("trainyard.learn.training.VALIDATION", 2)
    monkeypatch.setattr("trainyard.learn.training.JUDGED", 2)
    budget = {"iterations": 2, "decisions": 500, "changes": TINY}
    monkeypatch.setattr(learned, "QUICK", budget)


@pytest.mark.torch
def test_everything_that_is_told_was_run(small):
    tasks = learned.tasks(quick=True)
    found = {task: task.carry_out() for task in dict.fromkeys(tasks)}
    tables = {table.name: table for table in learned.tables(True, found)}
    (row,) = tables["dl2-learned"].records()
    main = [task for task in tasks if isinstance(task, Learning) and task.iterations][
        : len(learned.QUICK_SEEDS)
    ]
    jct = [found[task].scores[SETTINGS["testbed"]].jct for task in main]
    assert len({task.seed for task in main}) == len(jct) == 2
    assert row["DL2"] == pytest.approx(sum(jct) / 2)
    better, paper = tables["dl2-better"].records()
    assert better["than DRF"] == pytest.approx(100 * (1 - row["DL2"] / row["DRF"]))
    assert (paper["than DRF"], paper["than Optimus, true speeds"]) == (44.1, 17.5)
    assert [r["training"] for r in tables["dl2-ingredients"].records()] == list(learned.QUICK_VARIANTS)
    curve = [r for r in tables["dl2-curves"].records() if r["training"] == "main" and r["part"] == "rl"]
    assert [r["step"] for r in curve] == [0, 1, 2] * 2
    pictures = learned.pictures(list(tables.values()))
    assert all(png.startswith(b"\x89PNG") for png in pictures.values())
    assert set(pictures) == {"dl2-learning.png", "dl2-ingredients.png"}


@pytest.mark.torch
def test_the_same_training_gives_the_same_weights(small):
    learning = Learning((SETTINGS["testbed"],), ((SETTINGS["testbed"], 1),), 3, 2, 500, changes=TINY)
    one, two = learning.carry_out(), learning.carry_out()
    assert one.scores == two.scores
    assert one.curves.agreement == two.curves.agreement
    assert all((one.weights.arrays[name] == array).all() for name, array in two.weights.arrays.items())


def test_without_pytorch_it_says_so(monkeypatch):
    monkeypatch.setattr(learned, "find_spec", lambda _: None)
    assert learned.tasks(quick=True) == []
    (table,) = learned.tables(True, {})
    assert "PyTorch" in table.note
    assert learned.pictures([table]) == {}
