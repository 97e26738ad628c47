"""The thread that owns the controller: a queue in, transactions out.

Several requests that wait together are committed together. A decision is a transaction of its own, after
those that led to it were answered.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from trainyard.errors import TrainyardError
from trainyard.live.backends.base import RunKey
from trainyard.live.controller import BrokenError, Controller
from trainyard.live.store.log import FencedError, StoreError

T = TypeVar("T")
LONGEST_S = 60.0  # of sleep

Ask = Callable[[Controller], Any]
Asked = tuple[Ask, Future[Any]]


class EndedError(TrainyardError):
    """The controller has ended: nobody does what is asked."""


class Shell:
    """Runs a controller in a thread of its own."""

    def __init__(self, controller: Controller, forget: Callable[[list[RunKey]], None]) -> None:
        """`forget` is told of runs whose end was committed."""
        self.controller = controller
        self.store_trouble: tuple[float, str] | None = None  # since when (monotonic), and why
        self.failure: BaseException | None = None  # what ended the thread
        self._forget = forget
        self._asks: SimpleQueue[Asked] = SimpleQueue()
        self._begun: list[Future[Any]] = []  # what is done but not committed
        self._ends = threading.Event()
        self._over = threading.Event()
        self._said = False  # that the store is in trouble
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)
        self.ended: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask(self, ask: Callable[[Controller], T]) -> Future[T]:
        """Have something done in the controller's thread; the answer comes after the commit."""
        answer: Future[T] = Future()
        self._asks.put((ask, answer))
        if self._over.is_set():
            self._refuse()
        return answer

    def close(self) -> None:
        """Finish what is begun and end."""
        self._ends.set()
        self._asks.put((lambda _: None, Future()))
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
            self._over.set()
            for answer in self._begun:
                answer.set_exception(self._why())
            self._refuse()
            self.ended()

    def _refuse(self) -> None:
        """Answer everybody who would wait for ever."""
        for _, answer in self._all_asked():
            if answer.set_running_or_notify_cancel():
                answer.set_exception(self._why())

    def _why(self) -> EndedError:
        return EndedError(f"the controller has ended{f': {self.failure}' if self.failure else ''}")

    def _step(self) -> None:
        self.work(self._wait(self.controller.due_at()))

    def work(self, asked: list[Asked]) -> None:
        """Do what was asked, and decide if that is due."""
        controller = self.controller
        if asked:
            self._answer(asked)
        if controller.due_at() <= controller.clock.now() and not self._ends.is_set():
            controller.decide()
            self._commit()

    @property
    def is_asked(self) -> bool:
        """Whether anybody waits for an answer."""
        return not self._asks.empty()

    def asked(self) -> list[Asked]:
        """Return all that was asked so far: for whoever works without the thread, by a clock that is set."""
        return self._all_asked()

    def _wait(self, until_s: float) -> list[Asked]:
        """Sleep until somebody asks or the time has come; return all that was asked."""
        left = min(until_s - self.controller.clock.now(), LONGEST_S)
        try:
            first = self._asks.get(timeout=left) if left > 0 else self._asks.get_nowait()
        except Empty:
            return []
        return [first, *self._all_asked()]

    def _all_asked(self) -> list[Asked]:
        asked = []
        with contextlib.suppress(Empty):
            while True:
                asked.append(self._asks.get_nowait())
        return asked

    def _answer(self, asked: list[Asked]) -> None:
        """Do what was asked and is still wanted, commit it, and only then answer."""
        results: list[tuple[Any, Exception | None]] = []
        left = deque(asked)
        try:
            while left:
                ask, answer = left.popleft()
                if answer.set_running_or_notify_cancel():
                    self._begun.append(answer)
                    results.append(self._do(ask))
        finally:  # if this is the end, they are answered with all others
            for each in left:
                self._asks.put(each)
        self._commit()
        answers, self._begun = self._begun, []
        for answer, (result, trouble) in zip(answers, results, strict=True):
            if trouble is None:
                answer.set_result(result)
            else:
                answer.set_exception(trouble)

    def _do(self, ask: Ask) -> tuple[Any, Exception | None]:
        try:
            return ask(self.controller), None
        except (BrokenError, FencedError):
            raise
        except Exception as error:  # a refusal, or a mistake of who asked
            return None, error

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
                self._ends.wait(self.controller.settings.store_again_s)
        if self._said:
            print("trainyard: the store can be written again", file=sys.stderr, flush=True)
        self.store_trouble, self._said = None, False
        over, self.controller.forgettable = self.controller.forgettable, []
        if over:
            self._forget(over)

    def _complain(self, why: str) -> None:
        """Note the trouble at once; say it once it lasts."""
        since = time.monotonic() if self.store_trouble is None else self.store_trouble[0]
        self.store_trouble = since, why
        if not self._said and time.monotonic() - since >= self.controller.settings.store_s:
            self._said = True
            text = f"the store cannot be written: {why}; what runs goes on, nothing new is begun"
            print(f"trainyard: {text}", file=sys.stderr, flush=True)
