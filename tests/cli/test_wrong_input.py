"""Whatever is wrong with the input: exit code 2, one line that helps, and nothing else anywhere."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.cli.main import run

CLUSTER = """\
name: lab
gpu_types:
  V100: {speed: 1.0, memory_gb: 32}
nodes:
  - {count: 2, gpu_type: V100, gpus: 4}
"""
HEADER = "job_id,arrival_s,gpus,duration_s"
JOBS = f"{HEADER}\na,0,1,100\nb,5,8,50\n"
ELASTIC = "job_id,arrival_s,gpus,duration_s,min_gpus,max_gpus"
WORK = "job_id,arrival_s,gpus,duration_s,samples,model"
TYPED = "job_id,arrival_s,gpus,duration_s,gpu_type"
FAILURES = "time_s,node,repair_s"
NESTED = "{x: " * 2000 + "1" + "}" * 2000

SIMULATE = "simulate --cluster c.yaml --jobs j.csv --out out"
COMPARE = "compare --cluster c.yaml --jobs j.csv --out out --policies"
POLICY = f"{SIMULATE} --policy"
GENERATE = "trace generate out.csv --seed 1"
PLAN = "plan s.json --json"


def rows(*lines, header=HEADER):
    return {"j.csv": "\n".join([header, *lines]) + "\n"}


def nodes(text):
    return {"c.yaml": f"nodes:\n  - {text}\n"}


def snapshot(*jobs, **more):
    cluster = {"nodes": [{"count": 2, "gpus": 4, "gpu_type": "V100"}]}
    return {"s.json": json.dumps({"now_s": 50, "cluster": cluster, "jobs": list(jobs), **more}, indent=1)}


def job(job_id="a", **more):
    return {"job_id": job_id, "arrival_s": 0, "gpus": 2, "duration_s": 100, **more}


def wrong(row, field, *says, header=HEADER):
    """A jobs file with one row, and what is said about one field of it."""
    return SIMULATE, rows(row, header=header), [f"j.csv, line 2, field {field}", *says]


# name: (command line, files, what the line must say, in this order)
JOBS_CASES = {
    "missing column": (
        SIMULATE,
        {"j.csv": "job_id,arrival_s,duration_s\na,0,5\n"},
        ["j.csv, line 1, field gpus", "column 'gpus' is missing", "at least job_id, arrival_s, gpus"],
    ),
    "misspelt column": (
        SIMULATE,
        rows("a,0,1,5", header="job_id,arrival,gpus,duration_s"),
        ["j.csv, line 1, field arrival", "did you mean 'arrival_s'?"],
    ),
    "no work column": (
        SIMULATE,
        {"j.csv": "job_id,arrival_s,gpus\na,0,5\n"},
        ["j.csv, line 1, field duration_s", "'duration_s' (or 'samples') is missing"],
    ),
    "column twice": (
        SIMULATE,
        rows("a,0,1,5,2", header=f"{HEADER},gpus"),
        ["j.csv, line 1, field gpus", "twice", "once"],
    ),
    "semicolons": (
        SIMULATE,
        {"j.csv": JOBS.replace(",", ";")},
        ["j.csv, line 1", "separated by commas"],
    ),
    "too few cells": (SIMULATE, rows("a,0,1,5", "b,0,1"), ["j.csv, line 3", "3 cells", "must have 4"]),
    "open quote": (SIMULATE, rows('a,0,1,"5'), ["j.csv, line 2", "not valid CSV", "check the quotes"]),
    "text in a number": (
        SIMULATE,
        rows("a,0,1,5", "b,0,two,5"),
        ["j.csv, line 3, field gpus", "'two' is not a number", "must be a whole number from 1"],
    ),
    "fraction of a GPU": wrong("a,0,1.5,5", "gpus", "1.5 is not a whole number", "from 1"),
    "empty cell": wrong("a,,1,5", "arrival_s", "is missing", "at least 0"),
    "negative time": wrong("a,-1,1,5", "arrival_s", "-1 is too small", "at least 0"),
    "end of time": wrong("a,1e308,1,1e308", "arrival_s", "1e308 is too large", "at most 1e12"),
    "no duration": wrong("a,0,1,0", "duration_s", "0 is too small", "above 0"),
    "NaN": wrong("a,nan,1,5", "arrival_s", "nan is not finite"),
    "inf": wrong("a,0,1,inf", "duration_s", "inf is not finite", "above 0"),
    "zero GPUs": wrong("a,0,0,5", "gpus", "0 is too small", "from 1"),
    "10^9 GPUs": wrong("a,0,1000000000,5", "gpus", "1000000000 is too large", "to 1000000"),
    "duplicate id": (
        SIMULATE,
        rows("a,0,1,5", "b,0,1,5", "a,1,1,5"),
        ["j.csv, line 4, field job_id", "'a'", "line 2", "must be unique"],
    ),
    "job larger than the cluster": (
        SIMULATE,
        rows("a,0,1,5", "big,0,9,5"),
        ["j.csv, line 3, field gpus", "job 'big' needs 9 GPUs", "the cluster has 8", "at most"],
    ),
    "unknown GPU type": wrong(
        "a,0,1,5,V10", "gpu_type", "job 'a'", "unknown GPU type 'V10'", "did you mean 'V100'?", header=TYPED
    ),
    "more CPUs than a node has": wrong(
        "a,0,1,5,100", "cpus", "job 'a'", "100 CPUs", "ask for less", header=f"{HEADER},cpus"
    ),
    "unknown model": wrong(
        "a,0,1,,99,resnet5", "model", "'resnet5'; did you mean 'resnet50'?", "(--profiles FILE", header=WORK
    ),
    "model like no other": wrong(
        "a,0,1,,99,xyzzy", "model", "unknown model 'xyzzy'; known: ", "... (--profiles FILE", header=WORK
    ),
    "samples without a model": wrong(
        "a,0,1,,99,", "samples", "need a model or a profile", "or duration_s", header=WORK
    ),
    "duration and samples": wrong(
        "a,0,1,5,99,resnet50", "duration_s", "both given", "exactly one", header=WORK
    ),
    "neither duration nor samples": wrong("a,0,1,,,", "duration_s", "both empty", "exactly one", header=WORK),
    "min > max": wrong("a,0,2,5,4,3", "min_gpus", "4 is more than max_gpus 3", "at most", header=ELASTIC),
    "max < gpus": wrong("a,0,2,5,,1", "max_gpus", "1 is less than gpus 2", "at least", header=ELASTIC),
    "empty file": (SIMULATE, {"j.csv": ""}, ["j.csv", "the file is empty", "must hold a header line"]),
    "header only": (SIMULATE, rows(), ["j.csv", "no jobs after the header", "add one line for each job"]),
    "truncated gzip": (
        SIMULATE.replace("j.csv", "j.csv.gz"),
        {"j.csv.gz": gzip.compress(JOBS.encode() * 50)[:-20]},
        ["j.csv.gz", "truncated", "again"],
    ),
    "damaged gzip": (
        SIMULATE,
        {"j.csv": b"\x1f\x8b\x08\x00" + b"\x07" * 40},
        ["j.csv", "gzip file is damaged", "again"],
    ),
    "invalid UTF-8": (
        SIMULATE,
        {"j.csv": f"{HEADER}\n".encode() + b"caf\xe9,0,1,5\n"},
        ["j.csv, line 2", "0xe9 is not UTF-8", "must be a UTF-8 text file"],
    ),
    "binary": (SIMULATE, {"j.csv": b"PK\x03\x04\0\0\0"}, ["j.csv, line 1", "binary data", "must be text"]),
    "JSON line cut short": (
        SIMULATE,
        {"j.csv": json.dumps(job()) + '\n{"job_id": "b"'},
        ["j.csv, line 2", "not valid JSON", "every line must be one JSON object"],
    ),
    "JSON list": (
        SIMULATE,
        {"j.csv": json.dumps([job()])},
        ["j.csv", "JSON list", "one job object per line"],
    ),
    "bad inline profile": (
        SIMULATE,
        {"j.csv": json.dumps(job(profile={"batch": 4, "sync": {"kind": "rng"}}))},
        ["j.csv, line 1, field profile.sync.kind", "'rng'", "did you mean 'ring'?"],
    ),
    "missing file": (
        SIMULATE.replace("j.csv", "jj.csv"),
        {},
        ["jj.csv", "there is no such file", "did you mean 'j.csv'?"],
    ),
    "missing directory": (
        SIMULATE.replace("j.csv", "nowhere/x.csv"),
        {},
        ["nowhere/x.csv", "no such file", "'nowhere' does not exist either"],
    ),
    "directory instead of file": (
        SIMULATE.replace("j.csv", "."),
        {},
        ["error: .:", "this is a directory", "name a file"],
    ),
}
CLUSTER_CASES = {
    "missing cluster": (SIMULATE.replace("c.yaml", "cc.yaml"), {}, ["cc.yaml", "did you mean 'c.yaml'?"]),
    "empty cluster": (SIMULATE, {"c.yaml": " \n"}, ["c.yaml", "empty", "must hold a cluster"]),
    "bad YAML": (
        SIMULATE,
        {"c.yaml": "nodes:\n  - {count: 1, gpus: [\n"},
        ["c.yaml, line", "not valid YAML"],
    ),
    "YAML key twice": (
        SIMULATE,
        {"c.yaml": CLUSTER + "name: again\n"},
        ["c.yaml, line 6", "'name' is given twice", "give it once"],
    ),
    "YAML too deep": (SIMULATE, {"c.yaml": NESTED}, ["c.yaml", "nested too deeply"]),
    "YAML that runs code": (
        SIMULATE,
        {"c.yaml": "nodes: !!python/object/apply:os.getcwd []\n"},
        ["c.yaml, line 1", "not valid YAML"],
    ),
    "not a mapping": (SIMULATE, {"c.yaml": "- 1\n- 2\n"}, ["c.yaml", "must be written as {key: value}"]),
    "no nodes": (SIMULATE, {"c.yaml": "name: lab\n"}, ["c.yaml", "field nodes", "missing", "at least one"]),
    "empty list of nodes": (
        SIMULATE,
        {"c.yaml": "name: lab\nnodes: []\n"},
        ["c.yaml, line 2, field nodes", "at least one", "{count: 4, gpus: 8}"],
    ),
    "node without gpus": (
        SIMULATE,
        nodes("{count: 2}"),
        ["c.yaml, line 2, field nodes[0].gpus", "is missing", "a whole number from 1"],
    ),
    "unknown key": (
        SIMULATE,
        nodes("{count: 2, gpus: 4, gpu_typ: V100}"),
        ["c.yaml, line 2, field nodes[0].gpu_typ", "unknown key", "did you mean 'gpu_type'?"],
    ),
    "count as text": (
        SIMULATE,
        nodes("{count: '2', gpus: 4}"),
        ["c.yaml, line 2, field nodes[0].count", "'2' is text", "leave out the quotes"],
    ),
    "no speed": (
        SIMULATE,
        {"c.yaml": CLUSTER.replace("speed: 1.0", "speed: 0")},
        ["c.yaml, line 3, field gpu_types.V100.speed", "0 is too small", "above 0"],
    ),
    "speed not a number": (
        SIMULATE,
        {"c.yaml": CLUSTER.replace("speed: 1.0", "speed: .nan")},
        ["c.yaml, line 3, field gpu_types.V100.speed", "not finite", "above 0"],
    ),
    "10^9 GPUs in a cluster": (
        SIMULATE,
        nodes("{count: 1000000, gpus: 1000}"),
        ["c.yaml, line 2, field nodes[0].count", "1000000000 GPUs", "at most 1000000"],
    ),
}
POLICY_CASES = {
    "unknown policy": (f"{POLICY} fiffo", {}, ["policy 'fiffo'", "unknown stage", "did you mean 'fifo'?"]),
    "nothing like any policy": (
        f"{POLICY} xyzzy",
        {},
        ["unknown stage 'xyzzy'", "known: ", "fifo", "...; 'trainyard policies' lists all"],
    ),
    "empty policy": (f"{POLICY} ''", {}, ["policy ''", "is not a stage", "write name"]),
    "plus at the end": (f"{POLICY} fifo+", {}, ["policy 'fifo+'", "'' is not a stage", "write name"]),
    "stage twice": (f"{POLICY} srtf+pack+las", {}, ["'srtf' and 'las' both fill the order stage", "one"]),
    "preset and its stage": (f"{POLICY} easy+srtf", {}, ["'easy' and 'srtf' both fill the order stage"]),
    "preset with parameters": (f"{POLICY} easy(x=1)", {}, ["'easy' takes no parameters", "fifo(fill=easy)"]),
    "market with a size": (
        f"{POLICY} market+fixed",
        {},
        ["'market' and 'fixed' both fill the size stage", "one"],
    ),
    "two sizes by type": (
        f"{POLICY} market+gavel",
        {},
        ["'market' and 'gavel' both fill the size stage", "one"],
    ),
    "market's gamma": (f"{POLICY} market(gamma=-1)", {}, ["stage market", "gamma is -1", "from 0 to 10"]),
    "market's cap": (f"{POLICY} market(fair=0)", {}, ["stage market", "fair is 0", "above 0"]),
    "market's beta": (f"{POLICY} market(beta=2)", {}, ["stage market", "beta is 2", "from 0"]),
    "market's samples": (
        f"{POLICY} market(samples=0)",
        {},
        ["stage market", "samples: 0 is too small", "1 or more"],
    ),
    "market's engine": (f"{POLICY} market(engine=prizes)", {}, ["stage market", "engine", "prices"]),
    "bad parameter name": (f"{POLICY} fifo(fil=easy)", {}, ["stage fifo", "'fil'", "did you mean 'fill'?"]),
    "parameter of a stage without": (f"{POLICY} srtf(x=1)", {}, ["stage srtf", "'x'", "known: fairshare"]),
    "bad parameter value": (
        f"{POLICY} fifo(fill=esy)",
        {},
        ["stage fifo, parameter fill", "'esy' is not one of strict, greedy, easy", "did you mean 'easy'?"],
    ),
    "parameter not whole": (
        f"{POLICY} las(queues=two)",
        {},
        ["stage las, parameter queues", "'two' is not a whole number", "1 or more"],
    ),
    "thresholds that shrink": (f"{POLICY} las(threshold_s=5:3)", {}, ["stage las", "must grow", "5:3"]),
    "threshold infinite": (
        f"{POLICY} tiresias(threshold_gpu_s=inf)",
        {},
        ["stage tiresias, parameter threshold_gpu_s", "inf is not finite", "above 0"],
    ),
    "parameter without value": (f"{POLICY} fifo(fill)", {}, ["stage fifo", "'fill'", "write name=value"]),
    "parameter twice": (f"{POLICY} fifo(fill=easy,fill=easy)", {}, ["'fill' is given twice", "once"]),
    "unclosed bracket": (f"{POLICY} fifo(fill=easy", {}, ["policy 'fifo(fill=easy'", "not closed", "')'"]),
    "unopened bracket": (f"{POLICY} fifo)", {}, ["policy 'fifo)'", "a ')' has no '('"]),
    "policy listed twice": (f"{COMPARE} fifo,srtf,fifo", {}, ["policy 'fifo' is listed twice", "once"]),
    "policy listed twice in capitals": (
        f"{COMPARE} fifo,FIFO",
        {},
        ["policy 'FIFO' is listed twice as 'fifo'", "name each policy once"],
    ),
    "preset listed twice": (
        f"{COMPARE} easy+spread,spread+fifo(fill=easy)",
        {},
        ["policy 'spread+fifo(fill=easy)' is listed twice as 'easy+spread'"],
    ),
    "comma at the end": (
        f"{COMPARE} fifo,",
        {},
        ["policies 'fifo,'", "a comma has no policy on one side", "leave out the comma"],
    ),
    "no policies": (f"{COMPARE} ''", {}, ["policy ''", "is not a stage"]),
    "policy of a plan": ("plan s.json --policy fio", snapshot(job()), ["policy 'fio'", "'fifo'"]),
}
OPTION_CASES = {
    "output below a file": (
        "simulate --cluster c.yaml --jobs j.csv --out j.csv/out",
        {},
        ["j.csv/out", "below one", "name a directory"],
    ),
    "output is a file": (
        "compare --cluster c.yaml --jobs j.csv --policies fifo --out c.yaml",
        {},
        ["c.yaml", "this is a file", "name a directory"],
    ),
    "output without a name": (
        "simulate --cluster c.yaml --jobs j.csv --out ''",
        {},
        ["the output directory has no name", "give one"],
    ),
    "file without a name": (
        "simulate --cluster '' --jobs j.csv",
        {},
        ["'': this is a directory", "name a file"],
    ),
    "negative round": (f"{SIMULATE} --round-s -60", {}, ["--round-s -60", "above 0"]),
    "round of nothing": (f"{SIMULATE} --round-s 0", {}, ["--round-s 0", "above 0"]),
    "round not a number": (f"{SIMULATE} --round-s nan", {}, ["--round-s nan", "a finite number above 0"]),
    "endless round": (f"{SIMULATE} --round-s inf", {}, ["--round-s inf", "a finite number above 0"]),
    "restart not a number": (f"{SIMULATE} --restart-s nan", {}, ["--restart-s nan", "finite", "0 or more"]),
    "learning of a policy that cannot": (
        f"{SIMULATE} --policy srtf --learn-online a/lo --round-s 600",
        {},
        ["policy 'srtf' does not learn", "name one with dl2"],
    ),
    "text for a number": (
        f"{SIMULATE} --round-s minute",
        {},
        ["--round-s", "'minute' is not a number", "give one such as 60"],
    ),
    "text for a seed": (
        f"{SIMULATE} --seed x",
        {},
        ["--seed", "'x' is not a whole number", "give one such as 42"],
    ),
    "negative seed": (f"{SIMULATE} --seed -1", {}, ["--seed -1", "0 or more"]),
    "endless seed": (f"{SIMULATE} --seed {10**30}", {}, ["--seed", "too large", "give at most"]),
    "negative restart": (f"{SIMULATE} --restart-s -1", {}, ["--restart-s -1", "0 or more"]),
    "infinite start": (f"{SIMULATE} --start-s inf", {}, ["--start-s inf", "0 or more"]),
    "no time at all": (f"{SIMULATE} --until-s 0", {}, ["--until-s 0", "above 0"]),
    "failures of two kinds": (
        f"{SIMULATE} --failures f.csv --mtbf-h 5",
        {"f.csv": f"{FAILURES}\n"},
        ["--failures and --mtbf-h exclude each other", "one of them"],
    ),
    "negative MTBF": (f"{SIMULATE} --mtbf-h -5", {}, ["--mtbf-h -5", "above 0"]),
    "no repair": (f"{SIMULATE} --mtbf-h 5 --repair-h 0", {}, ["--repair-h 0", "above 0"]),
    "unknown option": (f"{SIMULATE} --polcy fifo", {}, ["unknown option '--polcy'", "mean '--policy'?"]),
    "option of no command": ("--vresion", {}, ["unknown option '--vresion'", "did you mean '--version'?"]),
    "unknown command": ("simulat", {}, ["unknown command 'simulat'", "did you mean 'simulate'?"]),
    "nothing like any command": ("xyzzy", {}, ["unknown command 'xyzzy'", "known: cancel, compare, down"]),
    "missing option": ("simulate --cluster c.yaml", {}, ["--jobs is missing", "give --jobs FILE"]),
    "missing policies": (
        "compare --cluster c.yaml --jobs j.csv",
        {},
        ["--policies is missing", "give --policies P1,P2,..."],
    ),
    "missing value": ("simulate --jobs j.csv --cluster", {}, ["--cluster", "value is missing", "after"]),
    "value of a flag": (f"{SIMULATE} --json=yes", {}, ["--json takes no value", "give --json alone"]),
    "one word too many": (f"{SIMULATE} fifo", {}, ["unexpected 'fifo'", "leave it out", "simulate --help"]),
}
FILE_CASES = {
    "profiles file missing": (f"{SIMULATE} --profiles p.yaml", {}, ["p.yaml", "there is no such file"]),
    "profiles not by name": (
        f"{SIMULATE} --profiles p.yaml",
        {"p.yaml": "- batch: 4\n"},
        ["p.yaml", "must be written as {key: value}"],
    ),
    "unknown key of a profile": (
        f"{SIMULATE} --profiles p.yaml",
        {"p.yaml": "mine:\n  batch: 4\n  input: {cpu_per_sample: 1}\n"},
        ["p.yaml, line 3, field mine.input.cpu_per_sample", "did you mean 'cpu_s_per_sample'?"],
    ),
    "bad value in a profile": (
        f"{SIMULATE} --profiles p.yaml",
        {"p.yaml": "mine:\n  batch: 4\n  compute: {fixed_s: -1}\n"},
        ["p.yaml, line 3, field mine.compute.fixed_s", "-1 is too small", "at least 0"],
    ),
    "failures without a column": (
        f"{SIMULATE} --failures f.csv",
        {"f.csv": "time_s,node\n5,V100-0\n"},
        ["f.csv, line 1, field repair_s", "is missing", "time_s, node, repair_s"],
    ),
    "failure of an unknown node": (
        f"{SIMULATE} --failures f.csv",
        {"f.csv": f"{FAILURES}\n5,V100-0,9\n6,V100-7,9\n"},
        ["f.csv, line 3, field node", "unknown node 'V100-7'", "did you mean 'V100-"],
    ),
    "failure before the start": (
        f"{SIMULATE} --failures f.csv",
        {"f.csv": f"{FAILURES}\n-5,V100-0,9\n"},
        ["f.csv, line 2, field time_s", "-5 is too small", "at least 0"],
    ),
}
PLAN_CASES = {
    "no snapshot": ("plan", {}, ["SNAPSHOT is missing", "plan --help"]),
    "snapshot missing": ("plan t.json", {"s.json": "{}"}, ["t.json", "no such file", "mean 's.json'?"]),
    "bad JSON": (PLAN, {"s.json": '{"now_s": 5,\n "jobs": [}'}, ["s.json, line 2", "not valid JSON"]),
    "empty standard input": ("plan -", {}, ["standard input", "empty", "a snapshot: now_s, cluster, jobs"]),
    "snapshot without a cluster": (
        PLAN,
        {"s.json": '{"now_s": 5,\n "jobs": []}'},
        ["s.json", "field cluster", "is missing"],
    ),
    "unknown key of a snapshot": (PLAN, snapshot(job(), job=[]), ["s.json", "'job'", "did you mean 'jobs'?"]),
    "time before the start": (
        PLAN,
        snapshot(job(), now_s=-5),
        ["s.json", "field now_s", "-5 is too small", "at least 0"],
    ),
    "allocation on an unknown node": (
        PLAN,
        snapshot(job(allocation={"V100-9": {"gpus": 2}})),
        ["s.json, line", "jobs[0].allocation.V100-9", "unknown node 'V100-9'", "did you mean 'V100-"],
    ),
    "over-allocated": (
        PLAN,
        snapshot(*(job(x, gpus=3, allocation={"V100-0": {"gpus": 3}}) for x in "ab")),
        ["s.json, line", "jobs[1].allocation.V100-0.gpus", "hold 6 gpus", "it has 4"],
    ),
    "allocation of another size": (
        PLAN,
        snapshot(job(allocation={"V100-0": {"gpus": 3}})),
        ["s.json, line", "jobs[0].allocation", "3 GPUs in all", "must have 2"],
    ),
    "more left than there was": (
        PLAN,
        snapshot(job(remaining_s=101)),
        ["s.json, line", "jobs[0].remaining_s", "101 is more", "at most 100"],
    ),
    "samples left of a duration": (
        PLAN,
        snapshot(job(remaining_samples=5)),
        ["s.json, line", "jobs[0].remaining_samples", "give remaining_s"],
    ),
    "same job twice": (
        PLAN,
        snapshot(job(), job()),
        ["s.json, line", "jobs[1].job_id", "jobs[0]", "must be unique"],
    ),
}
TRACE_CASES = {
    "no command": ("trace", {}, ["a command is missing", "convert, generate, stats"]),
    "unknown trace command": ("trace stat j.csv", {}, ["unknown command 'stat'", "did you mean 'stats'?"]),
    "no source": ("trace convert", {}, ["SRC is missing", "trace convert --help"]),
    "unknown preset": (
        f"{GENERATE} --preset filly --jobs 5",
        {},
        ["unknown preset 'filly'", "did you mean 'philly'?"],
    ),
    "no preset": (f"{GENERATE} --jobs 5", {}, ["--preset is missing", "give --preset NAME"]),
    "no jobs": (f"{GENERATE} --preset philly --jobs 0", {}, ["--jobs 0", "from 1"]),
    "too many jobs": (f"{GENERATE} --preset pai --jobs 99999999999", {}, ["--jobs 99999999999", "from 1 to"]),
    "text for jobs": (f"{GENERATE} --preset pai --jobs ten", {}, ["--jobs", "'ten' is not a whole number"]),
    "negative seed of a trace": (
        "trace generate out.csv --preset philly --jobs 5 --seed -2",
        {},
        ["--seed -2", "0 or more"],
    ),
    "rate of a preset": (
        f"{GENERATE} --preset philly --jobs 5 --rate-per-h 3",
        {},
        ["--rate-per-h is for --preset poisson"],
    ),
    "no rate": (f"{GENERATE} --preset poisson --jobs 5 --rate-per-h 0", {}, ["--rate-per-h 0", "above 0"]),
    "bad mix": (f"{GENERATE} --preset poisson --jobs 5 --gpus 1:x", {}, ["--gpus", "'1:x'", "as in 1:0.7"]),
    "bad share of a model": (
        f"{GENERATE} --preset philly --jobs 5 --models resnet50:-1",
        {},
        ["error: --models: 'resnet50:-1' is not name:share", "at least 0", "as in resnet50:2,lstm:1"],
    ),
    "no form of jobs files": (
        "trace generate o.txt --preset philly --jobs 5",
        {},
        ["DST 'o.txt'", "ends in .csv or .jsonl"],
    ),
    "no form of jobs files to convert to": (
        "trace convert t.csv o.txt",
        {"t.csv": "a,b\n1,2\n"},
        ["DST 'o.txt'", "ends in .csv or .jsonl"],
    ),
    "no picture": ("trace stats t.csv --plot x.txt", {}, ["--plot 'x.txt'", "ends in .png"]),
    "picture without a name": ("trace stats j.csv --plot ''", {}, ["--plot ''", "ends in .png"]),
    "mix of no GPUs": (f"{GENERATE} --preset poisson --jobs 5 --gpus 0:1", {}, ["--gpus", "'0'", "1:0.7"]),
    "mix without a share": (
        f"{GENERATE} --preset poisson --jobs 5 --gpus 1:0",
        {},
        ["--gpus", "'1:0'", "no share above 0"],
    ),
    "unknown model of a trace": (
        f"{GENERATE} --preset philly --jobs 5 --models resnet5:1",
        {},
        ["--models", "'resnet5'", "did you mean 'resnet50'?"],
    ),
    "no such directory": (
        "trace generate nowhere/x.csv --preset philly --jobs 5",
        {},
        ["nowhere/x.csv", "no directory 'nowhere'", "create it first"],
    ),
    "unknown format": (
        "trace convert --format hellios j.csv out.csv",
        {},
        ["unknown trace format 'hellios'", "did you mean 'helios'?"],
    ),
    "undetectable trace": (
        "trace convert t.csv out.csv",
        {"t.csv": "a,b\n1,2\n"},
        ["t.csv, line 1", "neither a jobs file nor a trace of a known form", "--format: philly"],
    ),
    "not what the format says": (
        "trace convert --format acme j.csv out.csv",
        {},
        ["j.csv, line 1, field", "is missing"],
    ),
    "bad number in a trace": (
        "trace convert t.csv out.csv",
        {"t.csv": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-03 00:00:00,x,1,1,a\n"},
        ["t.csv, line 2, field duration", "'x' is not a number"],
    ),
    "bad JSON trace": (
        "trace stats t.json",
        {"t.json": '[{"jobid": "a"'},
        ["t.json, line 1", "not valid JSON"],
    ),
    "empty trace": ("trace stats t.csv", {"t.csv": ""}, ["t.csv", "empty"]),
    "plot in no directory": (
        "trace stats j.csv --plot nowhere/x.png",
        {},
        ["nowhere/x.png", "no directory 'nowhere'", "create it first"],
    ),
}
CASES = JOBS_CASES | CLUSTER_CASES | POLICY_CASES | OPTION_CASES | FILE_CASES | PLAN_CASES | TRACE_CASES
# Also run as a process of their own: one for each way in which the command finds out.
AS_PROCESS = (
    "missing column", "bad YAML", "unknown policy", "policy listed twice", "text for a number",
    "unknown option", "unknown command", "output below a file", "bad JSON", "undetectable trace",
    "truncated gzip",
)  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "j.csv").write_text(JOBS)
    return tmp_path


def put(place, files):
    for name, content in files.items():
        (place / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def listing(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}, list(place.rglob("*"))


def arguments(command):
    return ["" if word == "''" else word for word in command.split()]


def check(code, out, err, fragments):
    assert (code, out) == (2, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("trainyard: error: ")
    assert "Traceback" not in err
    at = 0
    for fragment in fragments:
        at = err.find(fragment, at)
        assert at >= 0, f"{fragment!r} is not (or not in this order) in {err!r}"
        at += len(fragment)


@pytest.mark.parametrize("name", CASES)
def test_one_line_says_what_is_wrong(name, place, capfd, monkeypatch):
    command, files, fragments = CASES[name]
    put(place, files)
    before = listing(place)
    monkeypatch.setattr(sys, "argv", ["trainyard", *arguments(command)])
    with pytest.raises(SystemExit) as stopped:
        run()
    check(stopped.value.code, *capfd.readouterr(), fragments)
    assert listing(place) == before


@pytest.mark.parametrize("name", AS_PROCESS)
def test_the_same_as_a_process(name, place):
    command, files, fragments = CASES[name]
    put(place, files)
    before = listing(place)
    trainyard = Path(sys.executable).with_name("trainyard")
    done = subprocess.run(
        [trainyard, *arguments(command)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    check(done.returncode, done.stdout, done.stderr, fragments)
    assert listing(place) == before
