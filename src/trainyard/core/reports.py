"""What jobs say of themselves: how far they are, how fast, at which loss, what they saved.

Reports set the samples done and the rate of the job. Measured speeds also correct what is believed of later
starts: of all jobs of its kind, if it has a profile, else of this job alone, whose samples may be anything.
Once a job has reported, the model adds nothing to what was seen of it, and no checkpoints.
"""

from __future__ import annotations

from math import inf

from trainyard.core.carry_out import Carrier
from trainyard.core.events import CheckpointWritten, ProgressReported
from trainyard.core.lengths import set_total
from trainyard.errors import InputError
from trainyard.model.kind import kind_name
from trainyard.model.speed import Corrected, SpeedModel
from trainyard.state.corrections import Corrections, smoothed
from trainyard.state.lifecycle import State
from trainyard.state.record import Record

RUNNING = State.RUNNING
MOST = 1e9  # times as fast or slow as the model says: more is no speed
LEAST_S = 1.0  # a shorter time tells no speed


class Listener(Carrier):
    """The part of a yard (only that derives from it) that believes what jobs report."""

    model: SpeedModel  # `speed` is the same, as reports corrected it
    corrections: Corrections
    parked: dict[str, Record]

    def take_report(self, record: Record, report: ProgressReported) -> None:
        """A job says how far it is; what it said later counts more."""
        now, done = report.time_s, report.samples_done
        if now < record.reported_s or not 0 <= done < inf:
            return
        if report.samples_total is not None and 0 < report.samples_total < inf:
            set_total(record, report.samples_total)
        rate = _measured(record, now, done)
        self.lengths.set_done(record, done)
        record.since = record.reported_s = max(record.since, now)
        if report.samples_per_s is not None and 0 < report.samples_per_s < inf:
            rate = report.samples_per_s
        if record.state is RUNNING and rate > 0:
            record.rate = rate
            self._correct(record, rate)
        self._told(record)
        if report.loss is not None:
            record.see().reported(done, report.loss)

    def take_checkpoint(self, record: Record, written: CheckpointWritten) -> None:
        """A job has saved so much: a failure takes no more than what came after."""
        now, done = written.time_s, written.samples_done
        if not 0 <= done < inf:
            return
        if record.done_at(now) < done:
            self.lengths.set_done(record, done)
            record.since = max(record.since, now)
        record.reported_s = max(record.reported_s, 0.0)
        record.saved = max(0.0, record.total - done)
        if record.length is not None:
            record.length.saved = done
        self._told(record)

    def believe_corrections(self, corrections: Corrections) -> None:
        """Measured speeds differ from what was believed: what was worked out of that is void."""
        view, factors = self.view, corrections.factors()
        self.corrections = view.corrections = corrections
        self.speed = view.speed = Corrected(self.model, factors) if factors else self.model
        view.caches.clear()
        for record in (*self.table.records, *self.parked.values()):
            self.believe_rate(record)

    def believe_rate(self, record: Record) -> None:
        """Work out anew how fast a job is with what it asked for; without any speed all stays as it is."""
        try:
            rate = self.speed.work(record.job)[1] * record.pace
        except InputError:  # by the nodes that there are now
            return
        if rate != record.reference_rate:
            record.reference_rate = rate
            self.note(record)

    def _told(self, record: Record) -> None:
        self.lengths.watch(record)
        self._changed.append(record)
        self.view.reports += 1

    def _correct(self, record: Record, rate: float) -> None:
        """Let a measured speed tell of later starts."""
        job, held = record.job, record.occupies
        assert held is not None
        ratio = min(max(rate / self.model.rate(job, held), 1 / MOST), MOST)
        if job.profile is None:
            record.pace = ratio if record.pace == 1.0 else smoothed(record.pace, ratio)
            record.reference_rate = self.model.reference_rate(job) * record.pace
        elif self.corrections.learn(kind_name(job.kind), ratio):
            self.believe_corrections(self.corrections)


def _measured(record: Record, now: float, samples_done: float) -> float:
    """Samples/s since the last report, or since the run began; 0 if that cannot be told."""
    since, held = record.since, record.occupies
    seconds, done = now - since, samples_done - record.done_at(since)
    if record.state is not RUNNING or held is None or seconds <= 0 or done <= 0:
        return 0.0
    if since not in (record.run_since_s, record.reported_s):  # what was done by then was only believed
        return 0.0
    if record.job.elastic:
        record.see().ran_at((held.gpus, held.servers), seconds, done)
    return done / seconds if seconds >= LEAST_S else 0.0
