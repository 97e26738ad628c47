"""Where things lie on disk: jobs, their attempts, and the runs that are not over."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import get_ident
from typing import Any
from urllib.parse import quote, unquote

from trainyard.live.backends.base import MemberKey, RunKey

PRIVATE = 0o700


class Layout:
    """The directory of one store's jobs.

    jobs/JOB/checkpoint       survives attempts
    jobs/JOB/ATTEMPT/NODE     what a shim works in
    runs/JOB,ATTEMPT,NODE     empty: that member may still be there
    """

    def __init__(self, root: Path, store_id: str) -> None:
        self.root = root
        self.prefix = store_id[:8]
        self.runs = root / "runs"
        self.notices = root / "notices"  # a pipe into which shims say that there is something to see

    def prepare(self) -> None:
        """Make what is not there."""
        for folder in (self.root, self.root / "jobs", self.runs):
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)

    def job(self, job_id: str) -> Path:
        """All of one job."""
        return self.root / "jobs" / quote(job_id, safe="")

    def checkpoint(self, job_id: str) -> Path:
        """Where a job saves its work."""
        return self.job(job_id) / "checkpoint"

    def attempt(self, key: RunKey) -> Path:
        """All of one attempt."""
        return self.job(key.job_id) / str(key.attempt)

    def progress(self, key: RunKey) -> Path:
        """The file in which a job says how far it is."""
        return self.attempt(key) / "progress.json"

    def member(self, key: MemberKey) -> Path:
        """Where the shim of one member works."""
        return self.attempt(key.run) / quote(key.node, safe="")

    def mark(self, key: MemberKey) -> Path:
        """The file that says that a member may still be there."""
        return self.runs / ",".join(quote(part, safe="") for part in (key.job_id, str(key.attempt), key.node))

    def title(self, key: MemberKey) -> str:
        """The name of a member that no other has, of whatever store."""
        return f"{self.prefix},{self.mark(key).name}"

    def marked(self) -> list[MemberKey]:
        """All members that may still be there."""
        return [key_of(name) for name in sorted(os.listdir(self.runs))]

    def log(self, key: MemberKey, rank: int, *, server: bool) -> Path:
        """The output of one process."""
        return self.member(key) / f"{'server' if server else 'rank'}-{rank}.log"


def key_of(name: str) -> MemberKey:
    """Return the member that a mark is of."""
    job_id, attempt, node = (unquote(part) for part in name.split(",")[-3:])
    return MemberKey(job_id, int(attempt), node)


def write_json(path: Path, content: object) -> None:
    """Write a file whole or not at all; it survives a power cut."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}")  # two threads may do the same
    with open(fresh, "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Read what `write_json` or a shim wrote; None if it is not there."""
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return content if isinstance(content, dict) else {}
