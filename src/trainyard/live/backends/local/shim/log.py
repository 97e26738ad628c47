"""The output of one process."""

from __future__ import annotations

import os

TAIL = 400  # bytes of the last output that are remembered


class Log:
    """The output of one process, in a file; when it is full it becomes the older half (NAME.1).

    NAME.at has the number of bytes that came before the file, so that readers know where they are. What was
    dropped because the log was full, or lost because the disk was, is said in the log itself.
    """

    def __init__(self, path: str, most: int) -> None:
        self.path, self.most = path, max(most // 2, 1)
        self.descriptor = -1
        self.size = self.before = 0
        self.lost, self.why = 0, ""  # bytes that could not be written, and why
        self.tail = b""  # of the output
        self.write(b"")

    def write(self, data: bytes) -> None:
        """Keep some output; a full disk loses it, and stops nobody."""
        self.tail = (self.tail + data)[-TAIL:]
        try:
            if self.descriptor < 0:
                self._open()
            if self.size and self.size + len(data) > self.most:
                self._turn()
            if self.lost and data:
                self._say(f"{self.lost} bytes of output were lost: {self.why}")
                self.lost = 0
            while data:
                data = data[self._put(data) :]
        except OSError as error:
            self.lost, self.why = self.lost + len(data), str(error.strerror)

    def _put(self, data: bytes) -> int:
        """Write as much as there is room for; return how much that was."""
        wrote = os.write(self.descriptor, data)
        self.size += wrote
        return wrote

    def _say(self, text: str) -> None:
        self._put(f"[trainyard: {text}]\n".encode())

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.descriptor, self.size = os.open(self.path, flags, 0o600), 0

    def _turn(self) -> None:
        """Make the file the older half; what was that is dropped."""
        before, fresh = self.before + self.size, f"{self.path}.at.new"
        with open(fresh, "w", encoding="ascii") as file:
            file.write(str(before))
        os.rename(self.path, f"{self.path}.1")
        os.rename(fresh, f"{self.path}.at")
        os.close(self.descriptor)
        drops, kept, self.before, self.descriptor = self.before > 0, self.size, before, -1
        self._open()
        if drops:
            self._say(f"the log was full: of {before} bytes before this line at most {kept} are kept")

    def last_line(self) -> str:
        """Return the last line that says something."""
        lines = [line for line in self.tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""
