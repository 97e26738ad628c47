"""What a job runs, as it is stored: command, directory, environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class Spec(TypedDict):
    """The part of a submission that only backends need; it never changes."""

    command: list[str] | str
    workdir: str
    env: dict[str, str]
    grace_s: float | None


def argv_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the program and its arguments; a text is for the shell, in the job and never elsewhere."""
    command = spec["command"]
    return ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
