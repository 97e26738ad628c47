"""Learning during a run: a watcher that keeps recent history, has lessons done, and guards weights.

It is told of decisions and ends as they happen, by the simulator or by a live controller, and sets the
weights of the policy's dl2 stage between two decisions. In simulated time a lesson's verdict is waited for a
fixed number of slots after it was asked for, so that the same seed gives the same run; live it is taken
when it is there. All that lasts is in a directory: the weights in use, what was learnt of values, and every
verdict. It goes on from there when it is started again.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trainyard.core.instructions import Ended
from trainyard.errors import InputError
from trainyard.files.output import write_text_atomic
from trainyard.files.reading import read_text
from trainyard.files.safetensors import load_tensors, save_tensors
from trainyard.learn.background import Background
from trainyard.learn.history import History
from trainyard.learn.request import Answer, LearnRequest
from trainyard.model.rules import Rules
from trainyard.model.tolerance import ROUGH_PART
from trainyard.policy.policy import Policy
from trainyard.policy.size.dl2.arrays import Singles
from trainyard.policy.size.dl2.stage import Dl2
from trainyard.policy.size.dl2.weights import read_weights, save_weights
from trainyard.state.snapshot import Snapshot

WEIGHTS, VALUES, VERDICTS = "weights.safetensors", "values.safetensors", "verdicts.csv"
TAKEN, REFUSED, NOTHING = "taken", "refused", "nothing better found"
JUDGES = 3  # of this many blocks the last one judges, the others are learnt from
FEWEST = 2  # blocks that judge in the first lesson


@dataclass(frozen=True, slots=True)
class Learning:
    """How often to learn, and from what."""

    every: int = 60  # jobs that come between two lessons
    after: int | None = 6  # slots until the verdict is waited for; None: it is taken when it is there
    block: int = 20  # jobs that are learnt from, or judge, together
    blocks: int = 18  # of recent history
    iterations: int = 12  # of reinforcement learning in a lesson


class Verdict(NamedTuple):
    """What the guard said of one lesson; times in seconds, average JCTs in slots."""

    lesson: int
    asked_s: float
    judged_s: float
    episodes: int
    current_jct: float
    candidate_jct: float
    outcome: str

    @property
    def taken(self) -> bool:
        """Whether the new weights are used."""
        return self.outcome == TAKEN

    def __str__(self) -> str:
        both = f"{self.current_jct:.3f} -> {self.candidate_jct:.3f} slots in {self.episodes} replays, "
        judged = both if self.episodes else ""
        return f"lesson {self.lesson} at {self.judged_s:.0f} s: {judged}{self.outcome}"


def check_learns(policy: Policy) -> None:
    """Refuse a policy without a stage that can learn."""
    if not isinstance(policy.size, Dl2):
        what = "does not learn; name one with dl2, such as 'dl2(weights=paper)'"
        raise InputError(f"policy '{policy.name}' {what}")


class Online:
    """Keeps the dl2 stage of a policy learning; a `Watcher` of the run."""

    def __init__(self, policy: Policy, directory: Path, learning: Learning | None = None) -> None:
        check_learns(policy)
        assert isinstance(policy.size, Dl2)
        self.policy, self.stage, self.directory = policy, policy.size, directory
        self.learning = learning or Learning()
        self.history = History(self.learning.block, self.learning.blocks)
        self.verdicts: list[Verdict] = []
        self.background = Background()
        self._values: Mapping[str, Singles] | None = None
        if (directory / WEIGHTS).exists():
            self.stage.weights = read_weights(directory / WEIGHTS)
        if (directory / VALUES).exists():
            self._values = load_tensors(directory / VALUES)[0]
        self.stage.taken = []
        self._log, self._lesson = _earlier(directory / VERDICTS)
        self._asked_s: float | None = None  # when the lesson that is under way was asked for
        self._next = FEWEST * JUDGES * self.learning.block  # jobs that have to come before the next one

    def deciding(self, snapshot: Snapshot) -> None:
        """Take note of what happened; take new weights, and have a lesson done, if it is time."""
        taken, self.stage.taken = self.stage.taken or [], []
        self.history.see(snapshot, taken)
        slot_s = snapshot.rules.round_s or self.stage.weights.slot_s
        if self._asked_s is not None:
            self._hear(self._asked_s, snapshot.now_s, slot_s)
        if self._asked_s is None and self.history.came >= self._next:
            self._ask(snapshot, slot_s)

    def ended(self, end: Ended) -> None:
        """Take note of how much work a job really was."""
        self.history.ended(end)

    def close(self) -> None:
        """Stop learning; a lesson that is under way is lost."""
        self.background.close()
        self.stage.taken = None

    def _ask(self, snapshot: Snapshot, slot_s: float) -> None:
        """Have a lesson done."""
        blocks = self.history.blocks()
        judged = [block for number, block in blocks.items() if number % JUDGES == JUDGES - 1]
        learnt = [block for number, block in blocks.items() if number % JUDGES != JUDGES - 1]
        self._lesson += 1
        self._asked_s, self._next = snapshot.now_s, self.history.came + self.learning.every
        lesson = LearnRequest(
            number=self._lesson,
            seed=int(np.random.SeedSequence([snapshot.rules.seed, self._lesson]).generate_state(1)[0]),
            iterations=self.learning.iterations,
            policy=self.policy,
            values=self._values,
            cluster=snapshot.nodes.cluster,
            slot_s=slot_s,
            costs=Rules(restart_s=snapshot.rules.restart_s, start_s=snapshot.rules.start_s),
            learnt=learnt,
            judged=judged,
            jobs=list(self.history.jobs),
            slots=list(self.history.slots),
        )
        self.background.ask(lesson)

    def _hear(self, asked_s: float, now_s: float, slot_s: float) -> None:
        """Take the answer if it is time, or if it is there."""
        after = self.learning.after
        if after is not None and now_s < asked_s + after * slot_s - ROUGH_PART * slot_s:
            return
        answer = self.background.answer(wait=after is not None)
        if answer is not None:
            self._asked_s = None
            self._judge(answer, asked_s, now_s)

    def _judge(self, answer: Answer | str, asked_s: float, now_s: float) -> None:
        """Use new weights if they do not lose; the file is written before they are used."""
        if isinstance(answer, str):
            verdict = Verdict(self._lesson, asked_s, now_s, 0, math.nan, math.nan, f"lost: {answer}")
        else:
            self._values = answer.values
            verdict = _verdict(self._lesson, asked_s, now_s, answer)
            if verdict.taken and answer.weights is not None:
                save_weights(self.directory / WEIGHTS, answer.weights)
                self.stage.weights = answer.weights
            save_tensors(self.directory / VALUES, answer.values, {})
        self.verdicts.append(verdict)
        self._log += _line(verdict)
        write_text_atomic(self.directory / VERDICTS, self._log)


def _verdict(lesson: int, asked_s: float, now_s: float, answer: Answer) -> Verdict:
    """The guard: on the same episodes with the same draws the mean of the differences must not be above 0."""
    if answer.weights is None:
        return Verdict(lesson, asked_s, now_s, 0, math.nan, math.nan, NOTHING)
    outcome = TAKEN if (answer.candidate - answer.current).mean() <= 0 else REFUSED
    means = float(answer.current.mean()), float(answer.candidate.mean())
    return Verdict(lesson, asked_s, now_s, answer.current.size, *means, outcome)


def _line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _earlier(path: Path) -> tuple[str, int]:
    """Return what is in the log of verdicts, and the number of its last lesson."""
    if not path.exists():
        return _line(Verdict._fields), 0
    text = read_text(path, "verdicts of earlier lessons")
    last = text.splitlines()[-1].partition(",")[0] if text.startswith(_line(Verdict._fields)) else ""
    if last.isdecimal() or last == Verdict._fields[0]:
        return text, int(last) if last.isdecimal() else 0
    raise InputError("these are no verdicts of earlier lessons; name another directory", where=str(path))
