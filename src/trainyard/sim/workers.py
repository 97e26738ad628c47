"""Worker processes that end with the work: Ctrl-C reaches only the process that started them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workers(ProcessPoolExecutor):
    """A pool of processes; when the block that uses it fails or is interrupted, they end at once."""

    def __init__(
        self, count: int | None, initializer: Callable[..., Any] | None = None, initargs: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(count, initializer=initializer, initargs=initargs)
        self._others = set(active_children())  # that were there before

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand in a task; this is where processes start."""
        with _no_interrupt():
            return super().submit(fn, *args, **kwargs)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            for worker in set(active_children()) - self._others:
                worker.kill()
        return super().__exit__(kind, error, trace)


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Put Ctrl-C off for a moment; a process that starts meanwhile never sees it and prints no traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
