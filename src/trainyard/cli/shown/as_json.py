"""Answers as strict JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def print_json(data: object) -> None:
    """Print one JSON document on stdout."""
    print(to_json(data))


def to_json(data: object) -> str:
    """Return strict JSON: numbers that are not finite become null."""
    return json.dumps(_finite(data), indent=2, allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
