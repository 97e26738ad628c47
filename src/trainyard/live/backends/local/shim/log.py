"""The output of one process."""

from __future__ import annotations

import os

TAIL = 400  # bytes of the last output that are remembered


class Log:
    """The output of one process, in a file; when it is full it becomes the older half (NAME.1).

    NAME.at has the number of bytes that came before the file, so that readers know where they are.
    """

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most = path, max(most // 2, 1)
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = self.before = 0
        self.tail = b""  # of the output

    def write(self, data: bytes) -> None:
        """Keep some output; a full disk loses it, and stops nobody."""
        self.tail = (self.tail + data)[-TAIL:]
        try:
            if self.size + len(data) > self.most:
                self._turn()
            os.write(self.descriptor, data)
            self.size += len(data)
        except OSError:
            pass

    def _turn(self) -> None:
        self.before += self.size
        fresh = f"{self.path}.at.new"
        with open(fresh, "w", encoding="ascii") as file:
            file.write(str(self.before))
        os.rename(self.path, f"{self.path}.1")
        os.rename(fresh, f"{self.path}.at")
        os.close(self.descriptor)
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = 0

    def last_line(self) -> str:
        """Return the last line that says something."""
        lines = [line for line in self.tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""
