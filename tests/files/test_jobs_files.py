"""Jobs files: what is read, what is written, and what is refused with which words."""

from __future__ import annotations

import gzip
import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainyard.errors import InputError
from trainyard.files.job_check import check_jobs
from trainyard.files.jobs import load_jobs, write_jobs
from trainyard.model.cluster import Cluster, Node, uniform_cluster
from trainyard.model.job import Job
from trainyard.model.profile import Compute, Demand, Layer, Profile, Sync, Tables

HEADER = "job_id,arrival_s,gpus,duration_s"
ROW = "a,0,1,5"
ZOO = {"resnet50": Profile("resnet50", batch=256), "gnmt": Profile("gnmt")}


def refusal(path, content, profiles=ZOO):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load_jobs(path, profiles)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(path.parent) + "/", "")


def test_csv_with_all_columns(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,arrival_s,gpus,duration_s,samples,model,min_gpus,max_gpus,tenant,weight,deadline_s,"
        "gpu_type,cpus,memory_gb,status,checkpoint_s\n"
        "late,7.5,4,,1e6,resnet50,1,8,vision,2,900,V100,12,250,Pass,600\n"
        "early,0,1,60,,,,,,,,,,,,\n"
    )
    early, late = load_jobs(path, ZOO)
    assert early == Job("early", 0.0, 1, 60.0)
    assert late == Job(
        *("late", 7.5, 4, None, 1e6, "resnet50", ZOO["resnet50"], 1, 8),
        *("vision", 2.0, 900.0, "V100", 12.0, 250.0, "Pass", 600.0),
    )


def test_a_job_may_save_all_the_time(tmp_path):
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s,checkpoint_s\na,0,1,5,0\n")
    assert load_jobs(tmp_path / "j.csv", {})[0].checkpoint_s == 0


def test_ties_in_arrival_keep_file_order(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(f"{HEADER}\nz,5,1,1\nb,0,1,1\na,5,1,1\nc,0,1,1\n")
    assert [job.job_id for job in load_jobs(path, {})] == ["b", "c", "z", "a"]


@pytest.mark.parametrize(
    "content",
    [
        f"\ufeff{HEADER}\r\n{ROW}\r\n",
        f"{HEADER}\n\n{ROW}\n\n",
        "owner, job_id ,arrival_s,gpus,duration_s,\nme, a ,0.0,1.0,5,\n",
        gzip.compress(f"{HEADER}\n{ROW}".encode()),
        '{"job_id": "a", "arrival_s": 0, "gpus": 1, "duration_s": 5, "tenant": null, "note": []}\n\n',
        gzip.compress(b'{"job_id": "a", "arrival_s": 0, "gpus": 1, "duration_s": 5, "model": ""}'),
    ],
    ids=["bom-crlf", "blank-lines", "extra-columns", "gzip", "jsonl", "jsonl-gzip"],
)
def test_the_format_follows_from_the_content_not_the_name(tmp_path, content):
    path = tmp_path / "jobs.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert load_jobs(path, {}) == [Job("a", 0.0, 1, 5.0)]


def test_json_lines_with_numeric_ids_and_inline_profiles(tmp_path):
    profile = {
        "batch": 64,
        "sync": {"kind": "ps", "latency_s": 5e-5},
        "worker": {"cpus": 3, "memory_gb": 62.5},
    }
    lines = [{"job_id": i, "arrival_s": i, "gpus": 2, "samples": 100, "profile": profile} for i in range(2)]
    path = tmp_path / "jobs.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    first, second = load_jobs(path, {})
    assert first.job_id == "0"
    assert first.profile == Profile(batch=64, sync=Sync("ps"), worker=Demand(3.0, 62.5))
    assert second.profile is first.profile


def test_an_inline_profile_wins_over_the_model_of_that_name(tmp_path):
    path = tmp_path / "jobs.jsonl"
    line = (
        '{"job_id": "a", "arrival_s": 0, "gpus": 1, "samples": 5, "model": "mine", "profile": {"batch": 8}}'
    )
    path.write_text(line)
    jobs = load_jobs(path, ZOO)
    assert jobs[0].profile == Profile(batch=8)
    write_jobs(path, jobs)
    assert load_jobs(path, {}) == jobs


WRONG_CSV = {
    "empty": ("", "jobs.csv: the file is empty; it must hold a header line and a line for each job"),
    "blank": (" \n\n", "jobs.csv: the file is empty; it must hold a header line"),
    "header only": (HEADER, "jobs.csv: there are no jobs after the header; add one line for each job"),
    "twice": (
        f"{HEADER}\n{ROW}\n\n{ROW}",
        "jobs.csv, line 4, field job_id: 'a' is already the id of the job in line 2; it must be unique",
    ),
    "few cells": (
        f"{HEADER}\na,0,1",
        "jobs.csv, line 2: 3 cells in a table of 4 columns; every row must have 4",
    ),
    "many cells": (f"{HEADER}\n{ROW}\n{ROW},6", "jobs.csv, line 3: 5 cells in a table of 4 columns"),
    "no id": (
        f"{HEADER}\n,0,1,5",
        "line 2, field job_id: is missing; it must be one line of text such as 'job-17'",
    ),
    "no arrival": (
        f"{HEADER}\na,,1,5",
        "line 2, field arrival_s: is missing; it must be a number of at least 0",
    ),
    "no gpus": (
        f"{HEADER}\na,0, ,5",
        "line 2, field gpus: is missing; it must be a whole number from 1 to 1000000",
    ),
    "text": (
        f"{HEADER}\na,abc,1,5",
        "jobs.csv, line 2, field arrival_s: 'abc' is not a number; it must be a number",
    ),
    "nan": (f"{HEADER}\na,nan,1,5", "field arrival_s: nan is not finite; it must be a number of at least 0"),
    "inf": (f"{HEADER}\na,0,1,inf", "field duration_s: inf is not finite; it must be a number above 0"),
    "negative": (
        f"{HEADER}\na,-1,1,5",
        "field arrival_s: -1 is too small; it must be a number of at least 0",
    ),
    "zero time": (f"{HEADER}\na,0,1,0", "field duration_s: 0 is too small; it must be a number above 0"),
    "zero gpus": (
        f"{HEADER}\na,0,0,5",
        "field gpus: 0 is too small; it must be a whole number from 1 to 1000000",
    ),
    "half a gpu": (
        f"{HEADER}\na,0,1.5,5",
        "field gpus: 1.5 is not a whole number; it must be a whole number",
    ),
    "text gpus": (f"{HEADER}\na,0,two,5", "field gpus: 'two' is not a number; it must be a whole number"),
    "inf gpus": (f"{HEADER}\na,0,inf,5", "field gpus: inf is not a whole number"),
    "many gpus": (
        f"{HEADER}\na,0,2000000,5",
        "field gpus: 2000000 is too large; it must be a whole number from 1 to 1000000",
    ),
    "5000 digits": (
        f"{HEADER}\na,0,{'9' * 5000},5",
        f"field gpus: {'9' * 35}... is too large; it must be a whole",
    ),
    "no work": (
        f"{HEADER}\na,0,1,",
        "line 2, field duration_s: duration_s and samples are both empty; give exactly one of them",
    ),
    "both works": (
        f"{HEADER},samples,model\na,0,1,5,6,gnmt",
        "line 2, field duration_s: duration_s and samples are both given; give exactly one of them",
    ),
    "samples alone": (
        f"{HEADER},samples\na,0,1,,6",
        "field samples: samples need a model or a profile to tell their speed; give one, or duration_s",
    ),
    "model": (
        f"{HEADER},model\n{ROW},resnet5",
        "line 2, field model: unknown model 'resnet5'; did you mean 'resnet50'? (--profiles FILE brings",
    ),
    "far model": (f"{HEADER},model\n{ROW},zzz", "field model: unknown model 'zzz'; known: gnmt, resnet50"),
    "min over max": (
        f"{HEADER},min_gpus,max_gpus\na,0,4,5,5,2",
        "field min_gpus: 5 is more than max_gpus 2; it must be at most max_gpus",
    ),
    "min over gpus": (
        f"{HEADER},min_gpus\na,0,4,5,5",
        "field min_gpus: 5 is more than gpus 4; it must be at most gpus",
    ),
    "max below gpus": (
        f"{HEADER},max_gpus\na,0,4,5,2",
        "field max_gpus: 2 is less than gpus 4; it must be at least gpus",
    ),
    "weight": (f"{HEADER},weight\n{ROW},0", "field weight: 0 is too small; it must be a number above 0"),
    "control": (
        f"{HEADER}\na\x07,0,1,5",
        "field job_id: 'a\\x07' has characters that cannot be printed; it must be one",
    ),
    "near column": (
        f"job_id,arrival_s,gpus,duration\n{ROW}",
        "jobs.csv, line 1, field duration: unknown field 'duration'; did you mean 'duration_s'?",
    ),
    "case": (
        f"Job_ID,arrival_s,gpus,duration_s\n{ROW}",
        "field Job_ID: unknown field 'Job_ID'; did you mean 'job_id'?",
    ),
    "no column": (
        "job_id,arrival_s,duration_s\na,0,5",
        "field gpus: column 'gpus' is missing; the first line must name the columns, at least job_id,",
    ),
    "no header": (
        ROW,
        "jobs.csv, line 1, field job_id: column 'job_id' is missing; the first line must name the columns",
    ),
    "no work column": (
        "job_id,arrival_s,gpus\na,0,1",
        "line 1, field duration_s: column 'duration_s' (or 'samples') is missing; add it",
    ),
    "semicolons": (
        f"{HEADER}\n{ROW}".replace(",", ";"),
        "field job_id: column 'job_id' is missing; columns must be separated by commas",
    ),
    "same column": (
        f"{HEADER},gpus\n{ROW},1",
        "line 1, field gpus: column 'gpus' is there twice; it must be there once",
    ),
    "open quote": (
        f'{HEADER}\n"a,0,1,5\n',
        "jobs.csv, line 2: not valid CSV: unexpected end of data; check the quotes",
    ),
    "quote": (
        f'{HEADER}\n{ROW}\n"b"b,0,1,5',
        "jobs.csv, line 3: not valid CSV: ',' expected after '\"'; check the quotes",
    ),
    "binary": (b"\x00\x01\x02", "jobs.csv, line 1: this is binary data; it must be text (UTF-8)"),
    "latin-1": (
        HEADER.encode() + b"\na,0,1,5\nb\xe9,0,1,5",
        "jobs.csv, line 3: byte 0xe9 is not UTF-8 text; it must be a UTF-8 text file",
    ),
    "half gzip": (
        gzip.compress(f"{HEADER}\n{ROW}".encode())[:30],
        "jobs.csv: the gzip file is truncated; copy or download it again",
    ),
    "bad gzip": (b"\x1f\x8b\x08" + b"\xff" * 60, "jobs.csv: the gzip file is "),
}


@pytest.mark.parametrize("case", WRONG_CSV)
def test_wrong_csv(tmp_path, case):
    content, message = WRONG_CSV[case]
    assert message in refusal(tmp_path / "jobs.csv", content)


def line_with(**changes):
    record = {"job_id": "a", "arrival_s": 0, "gpus": 1, "duration_s": 5, **changes}
    return json.dumps({name: value for name, value in record.items() if value is not None})


WRONG_JSON = {
    "text number": (
        line_with(gpus="8"),
        "jobs.jsonl, line 1, field gpus: '8' is text, not a number: leave out the quotes; it must be a",
    ),
    "bool": (
        line_with(duration_s=True),
        "line 1, field duration_s: true is not a number; it must be a number above 0",
    ),
    "nan": (
        line_with(duration_s=float("nan")),
        "field duration_s: nan is not finite; it must be a number above 0",
    ),
    "huge": (
        line_with(duration_s=10**400),
        "field duration_s: a number above 1e30 is too large to compute with; it",
    ),
    "huge gpus": (
        line_with(gpus=10**400),
        "field gpus: a number above 1e30 is too large; it must be a whole number",
    ),
    "surrogate": (
        line_with(job_id="\ud800"),
        "field job_id: '\\ud800' has characters that cannot be printed; it must",
    ),
    "mapping id": (line_with(job_id={}), "field job_id: a mapping is not text; it must be one line of text"),
    "numeric model": (
        line_with(model=5),
        "field model: 5 is a number, not text: put it in quotes; it must be one line",
    ),
    "list": (
        f"{line_with()}\n[1]",
        "jobs.jsonl, line 2: a list is not a mapping; it must be written as {key: value}",
    ),
    "whole list": (
        f"[{line_with()}]",
        "jobs.jsonl: this is a JSON list; write one job object per line, without brackets",
    ),
    "near key": (
        line_with(duration_s=None, duration=5),
        "field duration: unknown field 'duration'; did you mean 'duration_s'?",
    ),
    "broken": (
        line_with()[:-1] + "\n",
        "line 1: not valid JSON: Expecting ',' delimiter at column 59; every line must be one JSON object",
    ),
    "digits": (
        line_with()[:-2] + "5" * 5000 + "}",
        "jobs.jsonl, line 1: a number too long or nesting too deep",
    ),
    "missing": (
        line_with(gpus=None),
        "line 1, field gpus: is missing; it must be a whole number from 1 to 1000000",
    ),
    "profile key": (
        f"{line_with()}\n{line_with(job_id='b', profile={'snyc': {}})}",
        "jobs.jsonl, line 2, field profile.snyc: unknown key 'snyc'; did you mean 'sync'?",
    ),
    "profile value": (
        line_with(profile={"compute": {"per_sample_s": {"V100": -1}}}),
        "line 1, field profile.compute.per_sample_s.V100: -1 is too small; it must be a number above 0",
    ),
    "profile name": (
        line_with(profile="gnmt"),
        "line 1, field profile: 'gnmt' is not a mapping; it must be written as",
    ),
}


@pytest.mark.parametrize("case", WRONG_JSON)
def test_wrong_json_lines(tmp_path, case):
    content, message = WRONG_JSON[case]
    assert message in refusal(tmp_path / "jobs.jsonl", content)


def test_an_unknown_model_when_there_are_no_profiles_at_all(tmp_path):
    message = refusal(tmp_path / "jobs.csv", f"{HEADER},model\n{ROW},gnmt", {})
    assert message.endswith("field model: unknown model 'gnmt' (--profiles FILE brings models of your own)")


TEXT = st.text(string.ascii_letters + string.digits + " ,;\"'é日", max_size=9).map(str.strip)
POSITIVE = st.floats(min_value=1e-3, max_value=1e9)
PROFILES = st.builds(
    Profile,
    batch=st.integers(1, 4096),
    scaling=st.sampled_from(["strong", "weak"]),
    compute=st.none()
    | st.builds(Compute, POSITIVE, st.dictionaries(st.sampled_from(["V100", "K80"]), POSITIVE)),
    sync=st.none() | st.builds(Sync, st.sampled_from(["ring", "ps"]), gradient_mb=POSITIVE),
    layers=st.lists(st.builds(Layer, POSITIVE, POSITIVE, POSITIVE), max_size=3).map(tuple),
    tables=st.none()
    | st.builds(Tables, st.lists(st.tuples(POSITIVE, POSITIVE, POSITIVE), max_size=2).map(tuple)),
    restart_s=POSITIVE,
)


@st.composite
def job_lists(draw, inline):
    jobs = []
    for job_id in draw(st.lists(TEXT.filter(bool), unique=True, min_size=1, max_size=6)):
        model = draw(st.sampled_from(["", *ZOO]))
        profile = draw(PROFILES) if inline and not model and draw(st.booleans()) else ZOO.get(model)
        work = draw(POSITIVE)
        by_samples = profile is not None and draw(st.booleans())
        least, gpus, most = sorted(draw(st.tuples(*[st.integers(1, 64)] * 3)))
        elastic = draw(st.booleans())
        jobs.append(
            Job(
                *(
                    job_id,
                    draw(st.floats(0, 1e7)),
                    gpus,
                    None if by_samples else work,
                    work if by_samples else None,
                ),
                *(
                    model,
                    profile,
                    least if elastic else None,
                    most if elastic else None,
                    draw(TEXT),
                    draw(POSITIVE),
                ),
                *(
                    draw(st.none() | POSITIVE),
                    draw(TEXT),
                    draw(st.none() | POSITIVE),
                    draw(st.none() | POSITIVE),
                ),
                *(draw(TEXT), draw(POSITIVE)),
            )
        )
    return sorted(jobs, key=lambda job: job.arrival_s)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".jsonl.gz"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_written_is_what_is_read(tmp_path, suffix, data):
    jobs = data.draw(job_lists(inline="jsonl" in suffix))
    path = tmp_path / f"jobs{suffix}"
    write_jobs(path, jobs)
    assert load_jobs(path, ZOO) == jobs
    before = path.read_bytes()
    write_jobs(path, jobs)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_csv_has_only_the_columns_that_are_used(tmp_path):
    write_jobs(tmp_path / "jobs.csv", [Job("a", 0.0, 1, 5.0, tenant="x")])
    assert (tmp_path / "jobs.csv").read_text() == f"{HEADER},tenant\na,0.0,1,5.0,x\n"


@pytest.mark.parametrize("model", ["", "label"])
def test_csv_cannot_hold_profiles(tmp_path, model):
    with pytest.raises(InputError, match=r"job 'a' has a profile of its own, .*; write a \.jsonl file"):
        write_jobs(tmp_path / "jobs.csv", [Job("a", 0.0, 1, 5.0, model=model, profile=Profile())])
    assert not list(tmp_path.iterdir())


MIXED = Cluster("mixed", (Node("V100-0", "V100", 4, 12, 100), Node("K80-0", "K80", 8, 24, 500)))
IMPOSSIBLE = [
    (Job("a", 0.0, 16, 1.0), "field gpus: job 'a' needs 16 GPUs; the cluster has 12, ask for at most that"),
    (Job("a", 0.0, 8, 1.0, gpu_type="V100"), "field gpus: job 'a' needs 8 V100 GPUs; the cluster has 4"),
    (Job("a", 0.0, 99, 1.0, min_gpus=13), "field min_gpus: job 'a' needs 13 GPUs; the cluster has 12"),
    (
        Job("a", 0.0, 1, 1.0, gpu_type="v10"),
        "field gpu_type: job 'a' wants unknown GPU type 'v10'; did you mean 'V100'?",
    ),
    (Job("a", 0.0, 1, 1.0, gpu_type="H200x"), "wants unknown GPU type 'H200x'; known: K80, V100"),
    (
        Job("a", 0.0, 2, 1.0, cpus=100.0),
        "cpus: job 'a' asks for 50 CPUs with each of 2 GPUs; the nodes have room for 0 such GPUs, ask for",
    ),
    (
        Job("a", 0.0, 4, 1.0, memory_gb=404.0, gpu_type="V100"),
        "field memory_gb: job 'a' asks for 101 GB with each of 4 GPUs; the nodes have room for 0 such GPUs",
    ),
]


@pytest.mark.parametrize(("job", "message"), IMPOSSIBLE)
def test_jobs_that_no_placement_can_satisfy(job, message):
    with pytest.raises(InputError) as caught:
        check_jobs([Job("fine", 0.0, 1, 1.0), job], MIXED, "jobs.csv")
    assert str(caught.value).startswith("jobs.csv, field ")
    assert message in str(caught.value)


def test_jobs_that_fit_exactly():
    whole = Job("whole", 0.0, 16, 1.0, cpus=48.0, memory_gb=1000.0)
    elastic = Job("elastic", 0.0, 32, 1.0, min_gpus=16, max_gpus=64)
    check_jobs([whole, elastic], uniform_cluster(2), "jobs.csv")
