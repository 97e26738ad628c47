"""An event that changes nothing, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trainyard.core.works import Works

Table = Mapping[type, Callable[[Works, Any, float], None]]  # what is done about an event, by its type


class MootError(Exception):
    """An event changes nothing; its text says why."""
