"""What a reader of events wants to hear of: everything, single jobs, their output."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainyard.server.faults import FieldError

MOST = 100  # topics of one stream
LOG = re.compile(
    r"log:(?P<job>\d+(_\d+)?)\.(?P<server>s?)(?P<rank>\d{1,9})(@(?P<attempt>\d{1,9})\.(?P<offset>\d{1,18}))?"
)
JOB = re.compile(r"job:(\d+(_\d+)?)")
RIGHT = "give yard, job:ID or log:ID.RANK, with commas between them"


@dataclass(frozen=True, slots=True)
class LogTopic:
    """The output of one process of a job; without `since` from its present end on."""

    job_id: str
    rank: int
    server: bool = False
    since: tuple[int, int] | None = None  # attempt and offset


@dataclass(frozen=True, slots=True)
class Topics:
    """What a stream is about."""

    yard: bool
    jobs: frozenset[str]  # with their stories
    logs: tuple[LogTopic, ...]

    def wants(self, job_id: str) -> bool:
        """Whether a job's changes are to be told."""
        return self.yard or job_id in self.jobs or any(log.job_id == job_id for log in self.logs)

    @property
    def named(self) -> frozenset[str]:
        """The jobs that are asked for by their ids."""
        return self.jobs | {log.job_id for log in self.logs}


def read_topics(text: str) -> Topics:
    """Read what follows `topics=`."""
    words = [word for word in text.split(",") if word] or ["yard"]
    if len(words) > MOST:
        raise FieldError("topics", f"{len(words)} topics; give at most {MOST}")
    jobs, logs = set(), []
    for word in words:
        if found := LOG.fullmatch(word):
            since = (int(found["attempt"]), int(found["offset"])) if found["attempt"] else None
            logs.append(LogTopic(found["job"], int(found["rank"]), bool(found["server"]), since))
        elif found := JOB.fullmatch(word):
            jobs.add(found[1])
        elif word != "yard":
            raise FieldError("topics", f"'{word[:40]}' is no topic; {RIGHT}")
    return Topics("yard" in words, frozenset(jobs), tuple(logs))


def read_position(text: str | None) -> tuple[int, int] | None:
    """Read EPOCH.V; None if there is none, (0, 0) if it means nothing here."""
    if not text:
        return None
    epoch, _, version = text.partition(".")
    known = epoch.isascii() and epoch.isdigit() and version.isascii() and version.isdigit()
    return (int(epoch[:18]), int(version[:18])) if known else (0, 0)
