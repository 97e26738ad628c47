"""The thread that owns the controller: a queue in, transactions out.

Several requests that wait together are committed together. A decision is a transaction of its own, after
those that led to it were answered.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from trainyard.live.backends.base import RunKey
from trainyard.live.controller import Controller
from trainyard.live.store.log import StoreError

T = TypeVar("T")
LONGEST_S = 60.0  # of sleep
AGAIN_S = 0.25  # before a store that failed is tried again

Ask = Callable[[Controller], Any]


class Shell:
    """Runs a controller in a thread of its own."""

    def __init__(self, controller: Controller, forget: Callable[[list[RunKey]], None]) -> None:
        """`forget` is told of runs whose end was committed."""
        self.controller = controller
        self.store_trouble: tuple[float, str] | None = None  # since when (monotonic), and why
        self.failure: BaseException | None = None  # what ended the thread
        self._forget = forget
        self._asks: SimpleQueue[tuple[Ask, Future[Any]]] = SimpleQueue()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self.ended: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask(self, ask: Callable[[Controller], T]) -> Future[T]:
        """Have something done in the controller's thread; the answer comes after the commit."""
        answer: Future[T] = Future()
        self._asks.put((ask, answer))
        return answer

    def close(self) -> None:
        """Finish what is begun and end."""
        self._ends.set()
        self.ask(lambda _: None)
        if self._thread.is_alive():
            self._thread.join()

    # -- the thread ----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                self._step()
        except BaseException as error:
            self.failure = error
        finally:
            self.ended()

    def _step(self) -> None:
        controller = self.controller
        asked = self._wait(controller.due_at())
        if asked:
            self._answer(asked)
        if controller.due_at() <= controller.clock.now() and not self._ends.is_set():
            controller.decide()
            self._commit()

    def _wait(self, until_s: float) -> list[tuple[Ask, Future[Any]]]:
        """Sleep until somebody asks or the time has come; return all that was asked."""
        left = min(until_s - self.controller.clock.now(), LONGEST_S)
        asked = []
        try:
            asked.append(self._asks.get(timeout=max(left, 0.0)) if left > 0 else self._asks.get_nowait())
            while True:
                asked.append(self._asks.get_nowait())
        except Empty:
            return asked

    def _answer(self, asked: list[tuple[Ask, Future[Any]]]) -> None:
        """Do what was asked, commit it, and only then answer."""
        answers: list[tuple[Future[Any], Any, Exception | None]] = []
        for ask, answer in asked:
            try:
                answers.append((answer, ask(self.controller), None))
            except Exception as error:
                answers.append((answer, None, error))
        self._commit()
        for answer, result, trouble in answers:
            if not answer.set_running_or_notify_cancel():
                continue
            if trouble is None:
                answer.set_result(result)
            else:
                answer.set_exception(trouble)

    def _commit(self) -> None:
        """Commit, however long the store takes: nothing else happens until then."""
        while True:
            try:
                self.controller.commit()
                break
            except StoreError as error:
                if self._ends.is_set():
                    raise
                self._complain(str(error))
                time.sleep(AGAIN_S)
        if self.store_trouble is not None:
            print("trainyard: the store can be written again", file=sys.stderr, flush=True)
            self.store_trouble = None
        over, self.controller.forgettable = self.controller.forgettable, []
        if over:
            self._forget(over)

    def _complain(self, why: str) -> None:
        if self.store_trouble is None or self.store_trouble[1] != why:
            since = time.monotonic() if self.store_trouble is None else self.store_trouble[0]
            self.store_trouble = since, why
            text = f"the store cannot be written: {why}; what runs goes on, nothing new is begun"
            print(f"trainyard: {text}", file=sys.stderr, flush=True)
