"""JSON as the API writes it: strict, so that numbers that are not finite are null."""

from __future__ import annotations

import json
import math
from typing import Any


def to_bytes(content: Any) -> bytes:
    """Return strict JSON."""
    try:
        return _dumps(content)
    except ValueError:
        return _dumps(_finite(content))


def _dumps(content: Any) -> bytes:
    return json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
