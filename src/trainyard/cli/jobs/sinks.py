"""Where the output of a job goes: to a screen or a pipe, or as JSON."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from trainyard.cli.shown.job import gpus
from trainyard.cli.shown.plain import Cleaner

Attempt = Mapping[str, Any]  # a row of the attempts of a job


class Sink(Protocol):
    """Takes the output of a job, attempt by attempt."""

    def begin(self, attempt: Attempt) -> None:
        """Output of another attempt follows."""

    def add(self, rank: int, data: bytes) -> None:
        """Take some output of a rank."""

    def end(self) -> None:
        """Nothing follows of this attempt."""


class Screen:
    """Writes bytes as they come, on a terminal without control characters; ranks before lines if asked."""

    def __init__(self, to: TextIO, named: bool) -> None:
        self._to, self._named, self._cleans = to, named, to.isatty()
        self._began = self._line_open = False
        self._cleaners: dict[int, _Cleaner] = {}
        self._lines: dict[int, bytes] = {}  # the beginning of a line, by rank

    def begin(self, attempt: Attempt) -> None:
        """Say which attempt follows, unless it is the first one shown."""
        if self._began:
            self._new_line()
            nodes = attempt["nodes"]
            count = gpus(sum(has["gpus"] for has in nodes.values()))
            self._write(f"--- attempt {attempt['attempt']}, {count}, {','.join(nodes)} ---\n".encode())
        self._began = True

    def add(self, rank: int, data: bytes) -> None:
        """Write some output."""
        if self._cleans:
            data = self._cleaners.setdefault(rank, _Cleaner()).clean(data)
        if self._named:
            *lines, self._lines[rank] = (self._lines.get(rank, b"") + data).split(b"\n")
            data = b"".join(_name(rank) + line + b"\n" for line in lines)
        self._write(data)

    def end(self) -> None:
        """Write what was kept back of lines that have no end."""
        for rank, line in sorted(self._lines.items()):
            self._write(_name(rank) + line + b"\n" if line else b"")
        self._lines.clear()
        self._cleaners.clear()

    def _new_line(self) -> None:
        if self._line_open:
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        if data:
            self._to.flush()
            self._to.buffer.write(data)
            self._to.buffer.flush()
            self._line_open = not data.endswith(b"\n")


class _Cleaner:
    """Removes control characters from bytes that come in pieces."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = Cleaner()

    def clean(self, data: bytes) -> bytes:
        return self._cleaner.clean(self._decoder.decode(data)).encode()


class Lines:
    """Prints one JSON object a line for each piece of output."""

    def __init__(self, job_id: str) -> None:
        self._job_id, self._attempt = job_id, 0

    def begin(self, attempt: Attempt) -> None:
        """Remember which attempt it is."""
        self._attempt = attempt["attempt"]

    def add(self, rank: int, data: bytes) -> None:
        """Print some output."""
        print(json.dumps(self.piece(rank, data)), flush=True)

    def end(self) -> None:
        """Nothing is kept back."""

    def piece(self, rank: int, data: bytes) -> dict[str, Any]:
        """Return some output as an object."""
        text = data.decode("utf-8", "replace")
        return {"job_id": self._job_id, "attempt": self._attempt, "rank": rank, "text": text}


class Whole(Lines):
    """Keeps all output, by rank."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self._data: dict[int, bytes] = {}

    def add(self, rank: int, data: bytes) -> None:
        """Keep some output."""
        self._data[rank] = self._data.get(rank, b"") + data

    def pieces(self) -> list[dict[str, Any]]:
        """Return all of it, an object for each rank."""
        return [self.piece(rank, data) for rank, data in sorted(self._data.items())]


def _name(rank: int) -> bytes:
    return f"[{rank}] ".encode()
