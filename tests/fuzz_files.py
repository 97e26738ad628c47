"""Small valid input files of every kind, and commands that read them: what the fuzzer starts from."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from stage_cases import EACH, random_policy

TRACES = Path(__file__).resolve().parent / "cases" / "traces"
COMMANDS = ("simulate", "compare", "plan", "trace stats", "trace convert", "trace generate", "fit")
IN_ROUNDS = ("gavel", "sia", "hadar")  # a long job is many decisions
MOST_LINES = 30  # of a trace; each reader has seen every kind of row by then

PROFILES: dict[str, Any] = {
    "plain": {"batch": 64, "compute": {"fixed_s": 0.01, "per_sample_s": {"V100": 0.004, "K80": 0.02}}},
    "ring": {
        "batch": 128,
        "scaling": "weak",
        "compute": {"per_sample_s": {"V100": 0.002}, "sample_gb": 0.05},
        "sync": {"kind": "ring", "gradient_mb": 98, "latency_s": 5e-5, "algorithm": "auto"},
        "layers": [
            {"forward_s": 0.01, "backward_s": 0.02, "mb": 40},
            {"forward_s": 0.02, "backward_s": 0.04, "mb": 58},
        ],
        "input": {"cpu_s_per_sample": 0.003, "sample_kb": 110, "dataset_gb": 140},
        "restart_s": 15,
    },
    "served": {
        "batch": 32,
        "compute": {"per_sample_s": {"V100": 0.01, "K80": 0.03}, "split": "equal"},
        "sync": {"kind": "ps", "mode": "async", "gradient_mb": 20, "eta": [1, 1, 2]},
        "worker": {"cpus": 1, "memory_gb": 8},
        "server": {"cpus": 1, "memory_gb": 4},
        "loss": {"b0": 0.05, "b1": 0.4, "b2": 0.3, "epoch_samples": 1000},
    },
    "measured": {
        "tables": {
            "workers_servers": [[1, 0, 90], [2, 0, 170], [4, 0, 300]],
            "cpu_memory": [[1, 10, 40], [3, 10, 80], [3, 60, 100]],
        }
    },
}
CLUSTER: dict[str, Any] = {
    "name": "lab",
    "gpu_types": {"V100": {"speed": 1.0, "memory_gb": 32}, "K80": {"speed": 0.25, "memory_gb": 12}},
    "nodes": [
        {"count": 2, "gpu_type": "V100", "gpus": 4, "cpus": 24, "memory_gb": 250, "network_gbps": 10},
        {"count": 1, "gpu_type": "K80", "gpus": 8, "prefix": "old", "intra_gbps": 50, "storage_mbps": 200},
    ],
}
JOBS: list[dict[str, Any]] = [
    {"job_id": "a", "arrival_s": 0, "gpus": 4, "duration_s": 600, "tenant": "vision", "weight": 2},
    {"job_id": "b", "arrival_s": 0, "gpus": 2, "duration_s": 900, "min_gpus": 1, "max_gpus": 8},
    {"job_id": "c", "arrival_s": 30.5, "gpus": 1, "samples": 90000, "model": "plain", "max_gpus": 4},
    {"job_id": "d", "arrival_s": 60, "gpus": 2, "samples": 50000, "model": "served", "min_gpus": 1},
    {"job_id": "e", "arrival_s": 90, "gpus": 4, "duration_s": 300, "model": "ring", "cpus": 8},
    {"job_id": "f", "arrival_s": 200, "gpus": 2, "duration_s": 500, "gpu_type": "K80", "memory_gb": 64},
    {"job_id": "g", "arrival_s": 300, "gpus": 1, "duration_s": 400, "model": "measured", "status": "failed"},
    {"job_id": "h", "arrival_s": 400, "gpus": 8, "duration_s": 200, "deadline_s": 4000, "checkpoint_s": 60},
]
COLUMNS = list(dict.fromkeys(key for job in JOBS for key in job))
SNAPSHOT: dict[str, Any] = {
    "now_s": 500,
    "cluster": CLUSTER,
    "rules": {"round_s": 60, "restart_s": 10, "seed": 1},
    "down": ["V100-1"],
    "jobs": [
        JOBS[0] | {"remaining_s": 200, "allocation": {"V100-0": {"gpus": 4, "cpus": 12, "memory_gb": 100}}},
        JOBS[1] | {"attained_gpu_s": 300},
        {k: v for k, v in JOBS[2].items() if k != "model"}
        | {"profile": PROFILES["plain"], "remaining_samples": 4000},
        {k: v for k, v in JOBS[3].items() if k != "model"} | {"profile": PROFILES["served"]},
        JOBS[5] | {"allocation": {"old-0": {"gpus": 2}}},
        JOBS[7] | {"arrival_s": 600},
    ],
}
FAILURES = "time_s,node,repair_s\n100,V100-0,50\n250.5,old-0,300\n260,V100-0,10\n"
SAMPLES = (
    "workers,servers,cpus,memory_gb,gpu_type,nodes,samples_per_s\n"
    "1,0,3,62,V100,1,100\n2,0,6,125,V100,1,190\n4,0,12,250,V100,1,350\n8,0,24,500,V100,2,600\n"
    "1,0,1,62,V100,1,60\n2,0,2,125,V100,1,120\n1,0,3,20,V100,1,90\n4,0,8,250,V100,1,300\n"
)
PHILLY = [
    {
        "status": "Pass",
        "vc": "6214e9",
        "jobid": f"application_{i}",
        "submitted_time": f"2017-10-0{i} 01:12:09",
        "attempts": [
            {
                "start_time": f"2017-10-0{i} 02:12:09",
                "end_time": f"2017-10-0{i} 05:12:09",
                "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}],
            }
        ],
    }
    for i in range(1, 5)
]
ACME = "job_id,user,gpu_num,type,state,submit_time,start_time,end_time,duration\n" + "".join(
    f"j{i},u1,{i},other,COMPLETED,2023-03-0{i} 11:00:58,2023-03-0{i} 11:01:08,2023-03-0{i} 12:01:16,3608\n"
    for i in range(1, 6)
)
HELIOS = "job_id,user,vc,gpu_num,state,submit_time,duration\n" + "".join(
    f"{i},u{i},vc1,{i},COMPLETED,2020-06-0{i} 18:41:01,{1000 * i}\n" for i in range(1, 6)
)
PAI = "".join(f"job{i},worker,{i},Terminated,1000{i},2000{i},600,29,{25 * i},V100\n" for i in range(1, 6))


@dataclass
class Case:
    """A command line and the files that it names."""

    argv: list[str]
    files: dict[str, bytes]

    @property
    def command(self) -> str:
        """What is run, such as `trace stats`."""
        said = " ".join(self.argv[:2] if self.argv[0] == "trace" else self.argv[:1])
        return said if said in COMMANDS else "no command"


def jobs_csv() -> str:
    """The jobs as a table."""
    rows = [",".join(COLUMNS), *(",".join(str(job.get(name, "")) for name in COLUMNS) for job in JOBS)]
    return "\n".join(rows) + "\n"


def jobs_lines() -> str:
    """The jobs as JSON lines, some with a profile of their own."""
    inline = [job | ({"profile": PROFILES[job["model"]]} if "model" in job else {}) for job in JOBS]
    return "".join(json.dumps(job) + "\n" for job in inline)


@cache
def traces() -> dict[str, str]:
    """A small trace of every form."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(TRACES.iterdir())}
    heads = {name: "".join(text.splitlines(True)[:MOST_LINES]) for name, text in texts.items()}
    jobs = jobs_csv()
    for name, in_zoo in (("plain", "vgg16"), ("served", "lstm"), ("ring", "resnet50"), ("measured", "gnmt")):
        jobs = jobs.replace(f",{name},", f",{in_zoo},")
    made = {"philly.json": json.dumps(PHILLY, indent=1), "acme.csv": ACME, "helios.csv": HELIOS}
    return heads | made | {"pai_task.csv": PAI, "jobs.csv": jobs}


def document(data: object, draw: Random) -> tuple[str, bytes]:
    """Data as JSON or as YAML, with the suffix of a file that has it."""
    if draw.random() < 0.4:
        return "json", json.dumps(data, indent=draw.choice((None, 1))).encode()
    style = draw.choice((None, True, False))
    return "yaml", yaml.safe_dump(data, sort_keys=False, default_flow_style=style).encode()


def run_files(draw: Random) -> tuple[list[str], dict[str, bytes]]:
    """The options of a run and their files."""
    files: dict[str, bytes] = {}
    for name, data in (("cluster", CLUSTER), ("profiles", PROFILES)):
        suffix, text = document(data, draw)
        files[f"{name}.{suffix}"] = text
    name, jobs = draw.choice((("jobs.csv", jobs_csv()), ("jobs.jsonl", jobs_lines())))
    zipped = draw.random() < 0.2
    files[name + ".gz" * zipped] = gzip.compress(jobs.encode(), mtime=0) if zipped else jobs.encode()
    if draw.random() < 0.4:
        files["failures.csv"] = FAILURES.encode()
    argv = [part for name in files for part in (f"--{name.partition('.')[0]}", name)]
    return argv, files


def a_policy(draw: Random) -> str:
    """A policy that the grammar takes, most often."""
    return draw.choice(EACH) if draw.random() < 0.7 else random_policy(draw)


def valid_case(draw: Random) -> Case:
    """A command line that is right, with small files."""
    kind = draw.choices(
        ("simulate", "compare", "plan", "stats", "convert", "generate", "fit"), (8, 1, 4, 3, 2, 1, 1)
    )[0]
    if kind in ("simulate", "compare"):
        argv, files = run_files(draw)
        policies = [a_policy(draw) for _ in range(1 + (kind == "compare"))]
        named = ["--policy" if kind == "simulate" else "--policies", ",".join(policies)]
        until = ["--until-s", draw.choice(("300", "600", "1000"))]
        if not any(name in named[1] for name in IN_ROUNDS) and draw.random() < 0.3:
            until = []  # it ends with its jobs
        return Case([kind, *argv, *named, *until, *json_flag(draw)], files)
    if kind == "plan":
        suffix, text = document(SNAPSHOT, draw)
        name = f"snapshot.{suffix}"
        return Case(["plan", name, "--policy", a_policy(draw), *json_flag(draw)], {name: text})
    if kind == "fit":
        more = ["--name", "m", "--batch", "32", "--out", "fitted.yaml"]
        return Case(["fit", "samples.csv", *more], {"samples.csv": SAMPLES.encode()})
    if kind == "generate":
        preset = draw.choice(("poisson", "philly", "helios-venus"))
        jobs = draw.choice(("1", "20", "300"))
        return Case(["trace", "generate", "made.csv", "--preset", preset, "--jobs", jobs], {})
    name = draw.choice(sorted(traces()))
    text = traces()[name].encode()
    if kind == "stats":
        return Case(["trace", "stats", name, *json_flag(draw)], {name: text})
    return Case(["trace", "convert", name, draw.choice(("out.csv", "out.jsonl.gz"))], {name: text})


def json_flag(draw: Random) -> list[str]:
    """Half of the time, ask for JSON."""
    return ["--json"] if draw.random() < 0.5 else []
