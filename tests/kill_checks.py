"""What must hold after kills: nothing is lost, nothing was done twice, all is written down."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from kill_cases import OVER, Found, Plan, end_everything, is_cancelled, processes_of, run_lives
from trainyard.live.deciding import Decider
from trainyard.live.recovery import check_log
from trainyard.live.store import reading
from trainyard.live.store.opening import connect

GONE_S = 5.0  # what ended may take so long to leave the list of processes
AGAIN = re.compile(r"(\d+) samples have to be done again")
STARTED = re.compile(r"attempt (\d+) started")
ENDED_WELL = ("saved", "stopped", "")  # nothing may be repeated after these


def run(plan: Plan) -> Found:
    """Let controllers live and die until all jobs are over, then look at what they left."""
    try:
        found = run_lives(plan)
        look_at(plan, found)
        return found
    finally:
        end_everything(plan)


def look_at(plan: Plan, found: Found) -> None:
    """See that every job ended once, that nothing was lost and nothing done twice."""
    until = time.monotonic() + GONE_S
    while (left := processes_of(plan)) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        found.wrong.append(f"{len(left)} processes are left")
    engine = connect(plan.url)
    with engine.connect() as connection:
        rows = {row["job_id"]: row for row in connection.execute(text("SELECT * FROM jobs")).mappings()}
        for number in range(1, plan.jobs + 1):
            _look_at_job(plan, connection, number, rows.get(str(number)), found)
        _look_at_store(connection, found)
        _look_at_disk(plan, connection, found)
    engine.dispose()
    found.jobs += plan.jobs


def _look_at_job(plan: Plan, connection: Connection, number: int, row: Any, found: Found) -> None:
    job_id, fine = str(number), ("done", "cancelled") if is_cancelled(number) else ("done",)
    state = "missing" if row is None else row["state"]
    if state not in fine:
        found.wrong.append(f"job {job_id} is {state}, not {' or '.join(fine)}")
    story = reading.story_of(connection, job_id)
    if (ends := sum(entry["state"] in OVER for entry in story)) > 1:
        found.wrong.append(f"job {job_id} ended {ends} times")
    attempts = reading.attempts_of(connection, job_id)
    found.attempts += len(attempts)
    if [entry["attempt"] for entry in attempts] != list(range(1, len(attempts) + 1)):
        found.wrong.append(f"attempts of job {job_id} are missing in the store")
    if any(entry["ended_s"] is None for entry in attempts):
        found.wrong.append(f"an attempt of job {job_id} has no end")
    codes = {entry["attempt"]: entry["code"] for entry in attempts}
    _look_at_history(plan, job_id, codes, state, story, found)


def _history(plan: Plan, job_id: str) -> dict[int, list[list[str]]]:
    """What a job wrote down itself, by attempt."""
    path = plan.root / "jobs" / job_id / "checkpoint" / "history"
    runs: dict[int, list[list[str]]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        attempt, *what = line.split()
        runs.setdefault(int(attempt), []).append(what)
    return runs


def _look_at_history(
    plan: Plan, job_id: str, codes: dict[int, str], state: str, story: list[Any], found: Found
) -> None:
    """Each attempt counts up to the checkpoint that the next one began from: every step exactly once."""
    runs, told = _history(plan, job_id), _told(story)
    for attempt, said in runs.items():
        if attempt not in codes:
            found.wrong.append(f"the store knows no attempt {attempt} of job {job_id}")
        if ["TWICE"] in said:
            found.wrong.append(f"job {job_id} ran twice at once (attempt {attempt})")
        if sum(what[0] == "from" for what in said) > 1:
            found.wrong.append(f"attempt {attempt} of job {job_id} was started twice")
    began = {a: [int(w[1]) for w in said if w[0] == "from"] for a, said in runs.items()}
    in_order = sorted(attempt for attempt in runs if began[attempt])
    history: list[int] = []
    for attempt, after in zip(in_order, [*in_order[1:], 0], strict=False):
        steps = [int(what[1]) for what in runs[attempt] if what[0] == "step"]
        upto = began[after][0] if after else plan.steps
        history += [step for step in steps if step <= upto]
        lost = len([step for step in steps if step > upto])
        found.repeated += lost
        code = codes.get(attempt, "unknown")
        _look_at_loss(plan, f"attempt {attempt} of job {job_id} ({code})", code, lost, told[attempt], found)
    if state == "done" and history != list(range(1, plan.steps + 1)):
        found.wrong.append(f"job {job_id} did {history}")
    if state != "done" and history != list(range(1, len(history) + 1)):
        found.wrong.append(f"job {job_id}, which was cancelled, did {history}")


def _told(story: list[Any]) -> Counter[int]:
    """How many samples have to be done again after which attempt, as the story says."""
    told: Counter[int] = Counter()
    attempt = 0
    for entry in story:
        if (started := STARTED.search(entry["text"])) is not None:
            attempt = int(started[1])
        if (again := AGAIN.search(entry["text"])) is not None:
            told[attempt] += int(again[1])
    return told


def _look_at_loss(plan: Plan, what: str, code: str, lost: int, told: int, found: Found) -> None:
    """See how much was repeated after an attempt, and whether the story says it."""
    if lost and code in ENDED_WELL:
        found.wrong.append(f"{what} ended well, but {lost} steps were repeated")
    if lost > plan.every:
        found.wrong.append(f"{lost} steps were repeated after {what}: more than one checkpoint interval")
    # A step may be written down and not yet reported; and a job goes on until it is killed.
    if lost > 1 and not (0 < told <= plan.every):
        found.wrong.append(f"{lost} steps were repeated after {what}; the story says {told}")


def _look_at_store(connection: Connection, found: Found) -> None:
    numbers = [seq for (seq,) in connection.execute(text("SELECT seq FROM events ORDER BY seq"))]
    if numbers != list(range(1, len(numbers) + 1)):
        found.wrong.append("the log has gaps")
    found.events += len(numbers)
    left = reading.open_intents(connection)
    if left:
        found.wrong.append(f"{len(left)} intents are open, such as {dict(left[0])}")
    try:
        check_log(connection, Decider())
    except Exception as error:
        found.wrong.append(f"the log does not replay: {str(error)[:600]}")


def _look_at_disk(plan: Plan, connection: Connection, found: Found) -> None:
    """See that nothing was done that is not written down."""
    asked: dict[str, set[tuple[str, int, str]]] = {"start": set(), "stop": set(), "kill": set()}
    for row in connection.execute(text("SELECT kind, job_id, attempt, record FROM intents")).mappings():
        nodes = [entry[0] for entry in json.loads(row["record"]).get("members", [[""]])]
        asked.setdefault(row["kind"], set()).update((row["job_id"], row["attempt"], node) for node in nodes)
    done = {
        "start": [_member(path.parent) for path in plan.root.glob("jobs/*/*/*/run.json")],
        "stop": [(*_member(path.parent)[:2], "") for path in plan.root.glob("jobs/*/*/*/stop")],
        "kill": [(path.parts[-3], int(path.parts[-2]), "") for path in plan.root.glob("jobs/*/*/kill")],
    }
    for kind, members in done.items():
        if unknown := sorted(set(members) - asked[kind]):
            found.wrong.append(f"nobody wrote down: {kind} {unknown}")


def _member(folder: Path) -> tuple[str, int, str]:
    job_id, attempt, node = folder.parts[-3:]
    return job_id, int(attempt), node
