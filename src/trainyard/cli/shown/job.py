"""Jobs as `ps` and `show` describe them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from trainyard.cli.shown.plain import one_line
from trainyard.cli.shown.times import clock, long, short

Job = Mapping[str, Any]
OVER = frozenset({"done", "failed", "cancelled"})
HEADINGS = ("JOB", "NAME", "USER", "TENANT", "STATE", "GPUS", "NODES", "TIME", "LEFT", "DONE", "WHY")


def row(job: Job) -> list[str]:
    """Return one line of `ps`."""
    return [
        job["job_id"],
        job["name"],
        job["user"],
        job["tenant"] or "-",
        job["state"],
        f"{job['gpus'] or '-'}/{job['max_gpus']}",
        ",".join(job["nodes"]) or "-",
        short(job["run_s"]) if job["attempt"] else "-",
        _left(job),
        _done(job),
        why(job),
    ]


def why(job: Job) -> str:
    """Say why a job does not run, or how it ended; what a running job once met is no reason any more."""
    return "" if job["state"] in ("running", "done") else str(job["reason"])


def left_s(job: Job) -> float | None:
    """Return how long a job still runs, if that is known."""
    done, total, rate = job["samples_done"], job["samples_total"], job["samples_per_s"]
    if done is None or total is None or not rate:
        return None
    return max(float(total - done), 0.0) / float(rate)


def _left(job: Job) -> str:
    if job["state"] in OVER:
        return "-"
    left = left_s(job)
    return "?" if left is None else short(left)


def _done(job: Job) -> str:
    done, total = job["samples_done"], job["samples_total"]
    return f"{min(done / total, 1):.0%}" if done is not None and total else "-"


def headline(job: Job, types: Mapping[str, str], now_s: float) -> str:
    """Say what a job does now, or how it ended."""
    parts = [f"{job['job_id']} {job['name']}: {job['state']}{_since(job, now_s)}{_holds(job, types)}"]
    if job["attempt"]:
        parts.append(f"attempt {job['attempt']} of this job")
    if job["retries"]:
        parts.append(f"retries used {job['retries_used']} of {job['retries']}")
    if job["state"] in OVER and (code := _code(job)):
        parts.append(code)
    return ", ".join(parts)


def _since(job: Job, now_s: float) -> str:
    if job["state"] in OVER:
        since = job["finished_s"]
    else:
        since = job["started_s"] if job["nodes"] else job["submitted_s"]
    if since is None:
        return ""
    return f" {'at' if job['state'] in OVER else 'since'} {clock(since, now_s)}"


def _holds(job: Job, types: Mapping[str, str]) -> str:
    """Say what a job has, or wants."""
    if not job["nodes"]:
        return "" if job["state"] in OVER else f", wants {wanted(job)}"
    on = ", ".join(_there(node, len(has["gpus"]), types) for node, has in job["nodes"].items())
    servers = f" and {job['servers']} servers" if job["servers"] else ""
    return f" with {gpus(job['gpus'])}{servers} ({on})"


def _there(node: str, count: int, types: Mapping[str, str]) -> str:
    return f"{types.get(node, 'GPU')} x{count} on {node}" if count else f"servers on {node}"


def wanted(job: Job) -> str:
    """Say how many GPUs a job wants."""
    least, most = job["min_gpus"], job["max_gpus"]
    of = f" of type {job['gpu_type']}" if job["gpu_type"] else ""
    return f"{gpus(most) if least == most else f'{least} to {most} GPUs'}{of}"


def gpus(count: int) -> str:
    """Say how many GPUs."""
    return f"{count} GPU{'' if count == 1 else 's'}"


def _code(job: Job) -> str:
    if job["exit_signal"]:
        return f"died of signal {job['exit_signal']}"
    return f"exit code {job['exit_code']}" if job["exit_code"] is not None else ""


def progress(job: Job, now_s: float) -> str:
    """Say how far a job is; empty if nobody knows."""
    done, total, rate = job["samples_done"], job["samples_total"], job["samples_per_s"]
    if done is None:
        return ""
    parts = [f"{_done(job)} of {total:,.0f} samples" if total else f"{done:,.0f} samples"]
    if rate:
        parts.append(f"{rate:,.4g}/s")
    if (left := left_s(job)) is not None:
        parts.append(f"done about {clock(now_s + left, now_s)}")
    return ", ".join(parts)


def command(job: Job) -> str:
    """Return what a job runs, as it would be typed."""
    run = job["command"]
    return one_line(run if isinstance(run, str) else shlex.join(run))


def limits(job: Job) -> str:
    """Say what a job may use up, and how much it did."""
    most, grace = job["time_limit_s"], job["grace_s"]
    allowed = f"{long(most)} running time" if most else "no limit of running time"
    parts = [f"{allowed} ({long(job['run_s'])} used)"]
    if grace is not None:
        parts.append(f"{long(grace)} to save its work")
    if job["after"]:
        parts.append(f"starts after {', '.join(job['after'])}")
    return ", ".join(parts)
