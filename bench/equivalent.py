"""Changes that no test can catch, and why: file, the lines as they are, the lines as they would be."""

from __future__ import annotations

AT_THE_TOLERANCE = "differs only where something is free to exactly the tolerance"
GUARD = "stands where the other branch of the outer `where` is taken"
NUMBERS = "only whether two of these numbers are the same matters"
FOR_SPEED = "how much is kept only makes decisions quicker or slower"
ONE_LEVEL = "a node has its bit in one level only, and not in this one"
LACKS = "lacks = beside.cpus[i] + CPUS_GB < share.cpus or beside.memory_gb[i] + CPUS_GB < share.memory_gb"
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "policy/place/fit.py",
        "if free_cpus[i] >= least_cpus and free_memory[i] >= least_memory:",
        "if free_cpus[i] > least_cpus and free_memory[i] >= least_memory:",
    ): AT_THE_TOLERANCE,
    (
        "policy/place/fit.py",
        "if free_cpus[i] >= least_cpus and free_memory[i] >= least_memory:",
        "if free_cpus[i] >= least_cpus and free_memory[i] > least_memory:",
    ): AT_THE_TOLERANCE,
    ("policy/place/servers.py", "break", "pass"): "nobody else gets a seat once all servers have one",
    (
        "state/snapshot.py",
        "mean: Floats = np.where(lived > 0, met / np.where(lived > 0, lived, 1.0), count)",
        "mean: Floats = np.where(lived > 0, met / np.where(lived > 0, lived, 2.0), count)",
    ): GUARD,
    (
        "policy/choose/walk.py",
        "near = key <= np.partition(key, about)[about]",
        "near = key < np.partition(key, about)[about]",
    ): "the walk goes on behind the front, wherever that ends",
    (
        "state/queue.py",
        "if not entries or entries[-1].seq < record.seq:",
        "if not entries or entries[-1].seq <= record.seq:",
    ): "no two jobs have the same number",
    (
        "state/beliefs.py",
        "held = self.snapshot.target.get(self.snapshot.table.jobs[row].job_id) if own < 0 else None",
        "held = self.snapshot.target.get(self.snapshot.table.jobs[row].job_id) if own <= 0 else None",
    ): "a job that accepts one GPU type holds no other",
    (
        "policy/choose/reservation.py",
        LACKS,
        LACKS.replace("CPUS_GB < share.cpus", "CPUS_GB <= share.cpus"),
    ): AT_THE_TOLERANCE,
    (
        "policy/choose/reservation.py",
        LACKS,
        LACKS.replace("CPUS_GB < share.memory", "CPUS_GB <= share.memory"),
    ): AT_THE_TOLERANCE,
    ("state/room.py", "levels[has] ^= bit", "levels[has] |= bit"): ONE_LEVEL,
    ("state/room.py", "levels[gpus] ^= bit", "levels[gpus] |= bit"): ONE_LEVEL,
    (
        "state/journal.py",
        "KEPT = 8192 # entries that readers may be behind; who is further behind starts anew",
        "KEPT = 8193 # entries that readers may be behind; who is further behind starts anew",
    ): FOR_SPEED,
    (
        "core/lengths.py",
        "if length.known or record.start < 0:",
        "if length.known or record.start < 1:",
    ): "runs are numbered from 1 on",
    ("core/lengths.py", "self.noted = 0 # entries so far", "self.noted = 1 # entries so far"): NUMBERS,
}
