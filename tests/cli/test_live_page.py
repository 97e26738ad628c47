"""The page of live clusters says what the commands, settings and environments really are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from trainyard.cli.main import LIVE, app
from trainyard.cli.operate.nodes import HEADINGS as NODES
from trainyard.cli.shown.job import HEADINGS as JOBS
from trainyard.core.real.ends import ENDS
from trainyard.live import environment
from trainyard.live.settings import Settings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "live.md").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(app).commands


def options(*verbs):
    """All options of these commands."""
    known = {"--help"}
    for verb in verbs:
        command = COMMANDS[verb]
        parts = [command, *getattr(command, "commands", {}).values()]
        known |= {name for part in parts for parameter in part.params for name in parameter.opts}
    return known


@pytest.mark.parametrize("verb", sorted(LIVE))
def test_every_command_is_there(verb):
    assert re.search(rf"`(trainyard )?{verb}\b|\$ trainyard {verb}\b", PAGE)


def test_every_option_that_it_names_is_one():
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE))
    assert sorted(named - options(*LIVE)) == []


@pytest.mark.parametrize("verb", ["submit", "up", "logs", "ps", "wait"])
def test_every_option_is_named(verb):
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", PAGE)) | {"--follow", "--all", "--backend"}
    assert (
        sorted(options(verb) - named - {"--help"} - {name for name in options(verb) if name[0] != "-"}) == []
    )


@pytest.mark.parametrize("setting", fields(Settings), ids=lambda setting: setting.name)
def test_settings_have_these_defaults(setting):
    assert f"| `{setting.name}` | {setting.default:,} |".replace(".0 |", " |") in PAGE


@pytest.mark.parametrize("code", sorted(ENDS))
def test_every_end_that_this_backend_meets_is_there(code):
    others = {"evicted", "node_lost"}  # of other backends
    assert f"`{code}`" in PAGE or code in others


def test_the_variables_of_a_worker():
    source = Path(environment.__file__).read_text(encoding="utf-8")
    names = {name for name in re.findall(r'"([A-Z][A-Z_]+)":', source) if not name.startswith("PET_")}
    assert len(names) > 15
    assert sorted(name for name in names if f"`{name}`" not in PAGE) == []


def test_tables_have_these_headings():
    shown = [line.split() for line in PAGE.splitlines() if line.startswith(("    JOB ", "    NODE "))]
    assert shown == [list(JOBS), " ".join(NODES).split()]
