"""Curves of a training: a CSV file, TensorBoard if that is installed, and a line on the screen."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Show = Callable[[str, int, Mapping[str, float]], None]  # part, step and numbers


class Journal:
    """Takes notes of numbers by part and step; without a directory it only passes them on."""

    def __init__(self, directory: Path | None = None, show: Show | None = None) -> None:
        self._show = show
        self._began = time.process_time()
        self._file = None if directory is None else (directory / "curves.csv").open("a", newline="")
        self._board: Any = None
        if directory is not None and find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(directory))

    def note(self, part: str, step: int, numbers: Mapping[str, float]) -> None:
        """Write numbers down."""
        if self._file is not None:
            rows = csv.writer(self._file, lineterminator="\n")
            cpu_s = round(time.process_time() - self._began, 1)
            rows.writerows((part, step, name, number, cpu_s) for name, number in numbers.items())
            self._file.flush()
        if self._board is not None:
            for name, number in numbers.items():
                self._board.add_scalar(f"{part}/{name}", number, step)
        if self._show is not None:
            self._show(part, step, numbers)

    def close(self) -> None:
        """End the files."""
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            self._board.close()
