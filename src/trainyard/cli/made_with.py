"""What a report says of its own making: the options of the run and the command line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from functools import partial
from inspect import signature
from typing import Any

from trainyard.cli.options import Run, read_run

ALWAYS = "seed"  # without it nobody can repeat a run, whether it was given or not


def made_with(run: partial[Run]) -> dict[str, str]:
    """Return the seed, the options that differ from their defaults, and the command line."""
    return {**_options(run.keywords), "command": shlex.join(["trainyard", *sys.argv[1:]])}


def _options(given: Mapping[str, Any]) -> dict[str, str]:
    defaults = {name: parameter.default for name, parameter in signature(read_run).parameters.items()}
    return {
        f"--{name.replace('_', '-')}": str(value)
        for name, value in given.items()
        if name == ALWAYS or value != defaults[name]
    }
