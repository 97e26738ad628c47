"""Learning in a process of its own: the scheduler does not wait for it, and its death does no harm."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread

from trainyard.learn.request import Answer, LearnRequest

DIED = "the learner died"
NICENESS = 10  # of the learner: the scheduler goes first


class Background:
    """One process, started when it is needed and again after it died."""

    def __init__(self) -> None:
        self.process: SpawnProcess | None = None
        self._line: Connection | None = None
        self._sender: Thread | None = None

    def ask(self, lesson: LearnRequest) -> None:
        """Hand over a lesson; it is packed at once and sent while the scheduler goes on."""
        if self.process is None or not self.process.is_alive():
            self._start()
        self._sender = Thread(target=_send, args=(self._line, pickle.dumps(lesson)), daemon=True)
        self._sender.start()

    def answer(self, wait: bool) -> Answer | str | None:
        """Return what came of the lesson, or a text that says why nothing did; None if it is not over."""
        assert self._line is not None
        try:
            if not (wait or self._line.poll()):
                return None
            answer: Answer | str = self._line.recv()
        except (EOFError, OSError):
            self.close()
            return DIED
        return answer

    def close(self) -> None:
        """End the process; what it is about is lost."""
        if self.process is not None and self._line is not None:
            self.process.kill()
            self.process.join()
            if self._sender is not None:
                self._sender.join()  # it ends as the other side is gone
            self._line.close()
        self.process = self._line = self._sender = None

    def _start(self) -> None:
        self.close()
        context = get_context("spawn")  # a fork of a process with threads may hang
        self._line, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()


def _send(line: Connection, data: bytes) -> None:
    with contextlib.suppress(OSError):  # it died; the answer says so
        line.send_bytes(data)


def _serve(line: Connection) -> None:
    """Do lessons until the scheduler is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    from trainyard.learn.candidate import learn

    with contextlib.suppress(EOFError, OSError):
        while True:
            lesson = line.recv()
            try:
                answer: Answer | str = learn(lesson)
            except Exception as error:  # whatever it is, the scheduler must go on
                answer = f"{type(error).__name__}: {error}"
            line.send(answer)
