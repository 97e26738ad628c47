"""Changes that no test can catch, and why: file, the lines as they are, the lines as they would be."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {}
