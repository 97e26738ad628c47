"""Answers as strict JSON."""

from __future__ import annotations

import json

from trainyard.files.strict_json import finite


def print_json(data: object) -> None:
    """Print one JSON document on stdout."""
    print(to_json(data))


def to_json(data: object) -> str:
    """Return strict JSON: numbers that are not finite become null."""
    return json.dumps(finite(data), indent=2, allow_nan=False)
