"""The house rules that a tool can check: rooms, names, sizes of files and functions, import cycles."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

SRC = Path(__file__).resolve().parents[1] / "src"
FILES = sorted((SRC / "trainyard").rglob("*.py"))
ROOMS = sorted({file.parent for file in FILES})
SHIPPED = [file for file in FILES if "reproduce" not in file.parts]


@cache
def tree(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def name_of(file):
    parts = file.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("room", [room for room in ROOMS if room != SRC / "trainyard"], ids=name_of)
def test_every_room_says_which_question_it_answers(room):
    said = ast.get_docstring(tree(room / "__init__.py"))
    assert said
    assert "?" in said.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("srtf", "order/srtf.py"),
        ("las", "order/las.py"),
        ("tiresias", "order/tiresias.py"),
        ("themis", "order/themis.py"),
        ("drf", "size/drf.py"),
        ("optimus", "size/optimus.py"),
        ("doubling", "size/doubling.py"),
        ("smd", "size/smd"),
        ("dl2", "size/dl2"),
        ("gavel", "types/gavel.py"),
        ("allox", "types/allox.py"),
        ("sia", "types/sia.py"),
        ("hadar", "types/hadar.py"),
        ("market", "types/market"),
        ("tetris", "place/tetris.py"),
        ("synergy", "tune/synergy"),
    ],
)
def test_the_name_of_a_paper_finds_its_file(name, place):
    policies = SRC / "trainyard" / "policy"
    found = [path for path in policies.rglob(f"{name}*") if path.suffix == ".py" or path.is_dir()]
    named = [path for path in found if path.stem == name]
    assert named == [policies / place]


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_room_is_small_and_has_no_family_of_prefixes(room):
    names = [file.stem for file in room.glob("*.py") if file.stem != "__init__"]
    assert len(names) <= 25
    families = Counter(name.split("_")[0] for name in names)
    assert [prefix for prefix, count in families.items() if count >= 3] == []


@pytest.mark.parametrize("file", SHIPPED, ids=name_of)
def test_no_file_is_too_long(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 450


def test_functions_are_short():
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    every = [node for file in SHIPPED for node in ast.walk(tree(file)) if isinstance(node, kinds)]
    lengths = [node.end_lineno - node.lineno + 1 for node in every]
    assert np.percentile(lengths, 95) <= 25


def test_tests_are_four_fifths_of_the_code_and_more():
    lines = [len(file.read_text(encoding="utf-8").splitlines()) for file in SHIPPED]
    tests = Path(__file__).parent.rglob("*.py")
    written = [len(file.read_text(encoding="utf-8").splitlines()) for file in tests]
    assert sum(written) >= 0.8 * sum(lines)


def imported(file, modules):
    """Modules that a file imports, those for type checking only included."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trainyard"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else node.module


def test_no_module_imports_itself_by_way_of_others():
    modules = {name_of(file): file for file in FILES}
    edges = {name: set(imported(file, modules)) & set(modules) - {name} for name, file in modules.items()}
    while leaves := [name for name, needs in edges.items() if not needs]:
        for name in leaves:
            del edges[name]
        for needs in edges.values():
            needs.difference_update(leaves)
    # What is left either stands on a cycle or imports one.
    needed = set().union(*edges.values()) if edges else set()
    assert sorted(needed & set(edges)) == []


def test_folders_of_tests_mirror_folders_of_code():
    tests = Path(__file__).parent
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    assert [folder for folder in folders if not (SRC / "trainyard" / folder).is_dir()] == []


def test_what_is_compiled_is_there_and_nothing_compiled_lies_beside_its_source():
    """A compiled module in src would be imported instead of its source, whatever is edited."""
    about = tomllib.loads((SRC.parent / "pyproject.toml").read_text(encoding="utf-8"))
    compiled = about["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]["include"]
    assert [name for name in compiled if not (SRC.parent / name).is_file()] == []
    assert [*SRC.rglob("*.so"), *SRC.rglob("*.pyd")] == []
