"""The documentation: its examples run and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainyard.files import schemas

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^\s*print\(.*\)  # (.*)$", re.MULTILINE)


def blocks(page):
    """Return (line, code) of every Python block."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_examples_run_and_print_what_they_say(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks(page):
        # Blank lines before the code make the line numbers of a traceback those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), names)
        printed = iter(capsys.readouterr().out.splitlines())
        for said in PRINTED.findall(code):
            assert said in printed, (
                f"{page.name}, block at line {line}: {said!r} is not printed (in this order)"
            )


def schema_names(node):
    """Return all keys that a JSON schema knows."""
    if isinstance(node, list):
        return set().union(*map(schema_names, node))
    if not isinstance(node, dict):
        return set()
    own = set(node["properties"]) if isinstance(node.get("properties"), dict) else set()
    return own.union(*map(schema_names, node.values()))


@pytest.mark.parametrize("name", ["CLUSTER", "JOB", "JOB_ROW", "PROFILE", "SNAPSHOT", "PROGRESS", "FAILURE"])
def test_the_page_of_files_has_every_key(name):
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    keys = schema_names(getattr(schemas, name).json_schema())
    assert keys
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


def test_the_python_api_has_examples():
    assert len(blocks(ROOT / "docs" / "python-api.md")) >= 8
