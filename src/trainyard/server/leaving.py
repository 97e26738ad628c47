"""What became of the jobs that ran when the controller was told to go."""

from __future__ import annotations

from collections import Counter

from trainyard.live.published import Published
from trainyard.state.lifecycle import TERMINAL, WITH_PROCESSES


def running(published: Published) -> list[str]:
    """Return the jobs that have processes."""
    return [view["job_id"] for view in published.jobs() if view["state"] in WITH_PROCESSES]


def last_words(published: Published, before: list[str]) -> dict[str, int]:
    """Count what these jobs are now: they go on, saved their work, did not, or are over."""
    counts = Counter(_became(published, job_id) for job_id in before)
    return {word: counts[word] for word in ("go_on", "saved", "not_saved", "over")}


def _became(published: Published, job_id: str) -> str:
    view = published.job(job_id)
    if view is None or view["state"] in TERMINAL:
        return "over"
    if view["state"] in WITH_PROCESSES:
        return "go_on"
    return "not_saved" if view["reason_code"] == "not_saved" else "saved"
