"""Whether the inner loop runs as machine code (`make compiled`) or as plain Python: the results are equal."""

from __future__ import annotations

from importlib.util import find_spec


def compiled() -> bool:
    """Look at where the core comes from, without importing it."""
    core = find_spec("trainyard.core.yard")
    return core is not None and core.origin is not None and not core.origin.endswith(".py")
