"""Learning in a process of its own: nobody waits for it unless he wants to, and its death does no harm."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import NamedTuple

from trainyard.learn.history import Block, Decided
from trainyard.model.arrays import Floats
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.features import Singles
from trainyard.policy.size.dl2.weights import Weights
from trainyard.sim.clock import Options

DIED = "the learner died"
KIND = 10  # lower priority than the engine's


@dataclass(frozen=True, slots=True)
class Lesson:
    """All that a lesson needs."""

    number: int
    seed: int
    iterations: int
    policy: Policy  # as it runs now; its size stage is dl2
    values: Mapping[str, Singles] | None  # what was learnt of values before
    cluster: Cluster
    slot_s: float
    costs: Options
    learnt: Sequence[Block]
    judged: Sequence[Block]  # never learnt from
    jobs: Sequence[Job]  # all that came, for those who look back
    slots: Sequence[Decided]


class Answer(NamedTuple):
    """What came of a lesson."""

    weights: Weights | None  # the candidate; None if nothing was found that seems better
    values: Mapping[str, Singles]
    current: Floats  # average JCT in slots, by episode that judges
    candidate: Floats


class Background:
    """One process, started when it is needed and again after it died."""

    def __init__(self) -> None:
        self.process: SpawnProcess | None = None
        self._line: Connection | None = None
        self._sender: Thread | None = None

    def ask(self, lesson: Lesson) -> None:
        """Hand over a lesson; it is packed at once and sent while the engine goes on."""
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
                self._sender.join()  # it ends as there is nobody to send to
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
    """Do lessons until the engine is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(KIND)
    from trainyard.learn.candidate import learn

    with contextlib.suppress(EOFError, OSError):
        while True:
            lesson = line.recv()
            try:
                answer: Answer | str = learn(lesson)
            except Exception as error:  # whatever it is, the engine must go on
                answer = f"{type(error).__name__}: {error}"
            line.send(answer)
