"""Small cases to compare with: results of other simulators, measured figures, samples of public traces.

README.md in this folder names the source of each.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TRACES = FOLDER / "traces"


@cache
def case(name):
    """Read a case by its path in this folder, without `.json`; whoever asks must not change it."""
    return json.loads((FOLDER / f"{name}.json").read_text())
