"""JSON has no numbers that are not finite."""

from __future__ import annotations

import math
from typing import Any


def finite(data: Any) -> Any:
    """Return plain data with null for numbers that are not finite."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
