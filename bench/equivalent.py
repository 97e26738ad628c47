"""Changes that no test can catch, and why: file, the lines as they are, the lines as they would be."""

from __future__ import annotations

AT_THE_TOLERANCE = "differs only where something is free to exactly the tolerance"
GUARD = "stands where the other branch of the outer `where` is taken"
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
}
