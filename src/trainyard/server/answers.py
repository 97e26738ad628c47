"""JSON as the API writes it: strict, so that numbers that are not finite are null."""

from __future__ import annotations

import json
from typing import Any

from trainyard.files.strict_json import finite


def to_bytes(content: Any) -> bytes:
    """Return strict JSON."""
    try:
        return _dumps(content)
    except ValueError:
        return _dumps(finite(content))


def _dumps(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )
