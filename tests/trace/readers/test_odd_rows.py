"""Odd rows of every form of trace: what is left out or changed, and how many of them."""

from __future__ import annotations

import json

import pytest

from trainyard.errors import InputError
from trainyard.trace.detect import detect, read_trace
from trainyard.trace.readers import (
    attempts,
    gavel,
    helios,
    openb,
    pai,
    philly,
    rfold,
    short_form,
    sia,
    thetagpu,
)
from trainyard.trace.readers.cells import Source, clock_s


def source(text, where="t.csv"):
    return Source(where, text)


def brief(trace):
    return [(job.job_id, job.arrival_s, job.gpus, job.duration_s) for job in trace.jobs]


def csv_of(columns, *rows):
    return source("\n".join(",".join(map(str, row)) for row in (columns, *rows)) + "\n")


# --- Philly, as it was published -------------------------------------------------------------------------


def entry(job_id="j", submitted="2017-10-07 01:00:00", attempts=(), status="Pass", vc="v"):
    return {
        "status": status, "vc": vc, "jobid": job_id, "submitted_time": submitted, "attempts": list(attempts)
    }  # fmt: skip


def attempt(start, end, *gpus):
    day = "2017-10-07 "
    times = {"start_time": start and day + start, "end_time": end and day + end}
    return times | {"detail": [{"ip": f"m{i}", "gpus": ["g"] * n} for i, n in enumerate(gpus)]}


def philly_of(*entries):
    return philly.read(source(json.dumps(entries)))


def test_philly_takes_the_gpus_of_the_first_attempt_that_has_any():
    tries = [
        attempt("01:00:10", "01:00:20"),
        attempt("01:00:30", "01:00:40", 2, 3),
        attempt("01:01:00", "01:02:00", 8),
    ]
    trace = philly_of(entry(attempts=tries))
    assert brief(trace) == [("j", 0, 5, 110)]


def test_philly_runs_from_the_first_start_that_is_known():
    tries = [attempt(None, None, 1), attempt("01:00:30", "01:00:40", 1)]
    assert brief(philly_of(entry(attempts=tries))) == [("j", 0, 1, 10)]


def test_philly_counts_every_reason_once():
    good = entry("good", attempts=[attempt("01:00:00", "01:00:05", 1)])
    trace = philly_of(
        entry("unsent", submitted="None", attempts=[attempt("01:00:00", "01:00:05", 1)]),
        entry("waiting"),
        entry("unstarted", attempts=[attempt("", "", 1)]),
        entry("running", attempts=[attempt("01:00:00", "01:00:05", 1), attempt("01:00:06", None, 1)]),
        entry("backwards", attempts=[attempt("01:00:09", "01:00:05", 1)]),
        good,
    )
    assert [job.job_id for job in trace.jobs] == ["good"]
    assert trace.dropped == {
        "no time of submission": 1,
        "never ran": 2,
        "still running when the log was taken": 1,
        "ends before it starts": 1,
    }
    assert trace.report.read == 6


def test_philly_without_status_or_cluster():
    trace = philly_of(entry(attempts=[attempt("01:00:00", "01:00:05", 1)], status=None, vc=None))
    assert (trace.jobs[0].tenant, trace.jobs[0].status) == ("", "")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("{}", "t.csv: a Philly job log is a JSON list of jobs"),
        ("[\n{]", "t.csv, line 2: not valid JSON: "),
        ("[3]", "t.csv, job 0: '3' is not a JSON object"),
        (json.dumps([entry(), {"status": "", "vc": ""}]), "t.csv, job 1, field jobid: is missing"),
        (json.dumps([entry() | {"attempts": 3}]), "t.csv, job 0, field attempts: '3' is not a list"),
        (json.dumps([entry(attempts=["x"])]), "t.csv, job 0: 'x' is not a JSON object"),
        (
            json.dumps([entry(attempts=[attempt("01:00:00", "25:00:00", 1)])]),
            "t.csv, job 0, field end_time: '2017-10-07 25:00:00' is not a time such as",
        ),
        (
            json.dumps([entry(attempts=[attempt("01:00:00", "01:00:05") | {"detail": [{"gpus": "two"}]}])]),
            "t.csv, job 0, field gpus: 'two' is not a list",
        ),
    ],
)
def test_philly_logs_that_are_wrong(entries, said):
    with pytest.raises(InputError) as wrong:
        philly.read(source(entries))
    assert str(wrong.value).startswith(said)


# --- Philly, as others carry it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("submit", "wait", "run_s", "left"),
    [
        (attempts.SUMMER_TIME_ENDS - 100, 0, 7200, 3600),  # begins before and ends after
        (attempts.SUMMER_TIME_ENDS - 100, 100, 7200, 7200),  # begins as it ends
        (attempts.SUMMER_TIME_ENDS - 7200, 0, 7200, 3600),  # ends at that very second
        (attempts.SUMMER_TIME_ENDS - 7201, 0, 7200, 7200),  # ends the second before
        (attempts.SUMMER_TIME_ENDS - 100, 0, 3600, 3600),  # an hour at most: nothing was added
    ],
)
def test_attempts_through_the_end_of_summer_time(submit, wait, run_s, left):
    trace = attempts.read(csv_of(attempts.COLUMNS, (run_s, wait, submit, 1)))
    assert trace.jobs[0].duration_s == left
    assert len(trace.report.changed) == (left != run_s)


def test_winter_time_is_an_hour_behind_summer_time():
    end = attempts.SUMMER_TIME_ENDS
    rows = [(60, 0, end - 1, 1), (60, 0, end + 3600, 1)]
    assert [job.arrival_s for job in attempts.read(csv_of(attempts.COLUMNS, *rows)).jobs] == [0, 1]


def test_rfold_knows_its_clock_only_of_the_whole_trace(monkeypatch):
    rows = [("a", 5, 1, 10), ("b", 6, 0, 10)]
    assert rfold.read(csv_of(rfold.COLUMNS, *rows)).origin_s is None
    monkeypatch.setattr(rfold, "PHILLY_JOBS", 2)
    assert rfold.read(csv_of(rfold.COLUMNS, *rows)).origin_s == 23 * 3600 + 27 * 60  # a Monday


def test_venus_knows_its_clock_only_of_the_whole_trace(monkeypatch):
    rows = [("a", 5, 10, 1), ("b", 6, 10, 1)]
    assert helios.read_venus(csv_of(short_form.COLUMNS, *rows)).origin_s is None
    monkeypatch.setattr(helios, "VENUS_JOBS", 2)
    assert helios.read_venus(csv_of(short_form.COLUMNS, *rows)).origin_s == 2 * 86_400 + 4 * 3600 + 99


def test_run_times_at_the_clamp_are_counted():
    rows = [("a", 0, 172_800, 1), ("b", 0, 172_799, 1), ("c", 0, 172_800, 0), ("d", 0, 200_000, 1)]
    report = short_form.read_short(csv_of(short_form.COLUMNS, *rows), "helios").report
    assert report.changed == {"run time clamped at 172,800 s before it came here": 2}
    assert report.dropped == {"no GPUs": 1}


def test_helios_rows_without_a_time():
    rows = [("a", "u", "v", 1, "DONE", "", 5), ("b", "u", "v", 2, "DONE", "2020-06-09 18:41:01", 5)]
    trace = helios.read(csv_of(helios.COLUMNS, *rows))
    assert brief(trace) == [("b", 0, 2, 5)]
    assert trace.dropped == {"no time of submission": 1}
    assert trace.origin_s == 86_400 + 18 * 3600 + 41 * 60 + 1  # a Tuesday


# --- Alibaba -----------------------------------------------------------------------------------------------


def tasks_of(*rows):
    """Rows of job, instances, start, end and GPUs in percent."""
    lines = [
        f"{job},worker,{n},Terminated,{start},{end},100,1,{plan},T4" for job, n, start, end, plan in rows
    ]
    return pai.read(source("\n".join(lines) + "\n", "nowhere.csv"))


@pytest.mark.parametrize(
    ("instances", "plan", "gpus", "rounded"),
    [(1, 100, 1, 0), (2, 25, 2, 1), (1, 150, 2, 1), (3, 200, 6, 0), (1, 101, 2, 1), (1, 1, 1, 1)],
)
def test_pai_gives_every_instance_whole_gpus(instances, plan, gpus, rounded):
    trace = tasks_of(("a", instances, 10, 20, plan))
    assert brief(trace) == [("a", 0, gpus, 10)]
    assert trace.report.changed.total() == rounded


def test_pai_tasks_without_gpus_do_not_stretch_a_job():
    trace = tasks_of(
        ("a", 1, 5, 900, 0), ("a", 1, 100, 200, 100), ("a", 0, 1, 999, 100), ("a", 2, 90, 150, 100)
    )
    assert brief(trace) == [("a", 0, 3, 110)]


def test_pai_jobs_need_all_their_times():
    trace = tasks_of(
        ("a", 1, 0, 20, 100),
        ("b", 1, 10, 0, 100),
        ("c", 1, 10, 20, 100),
        ("c", 1, 10, "", 100),
        ("d", 1, 1, 2, 100),
    )
    assert [job.job_id for job in trace.jobs] == ["d"]
    assert trace.dropped == {"no start or no end": 3}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a", "i", "u", "Terminated", "1", "2"], True),
        (["a", "t", "1", "Waiting", "1", "2", "3", "4", "5", "T4"], True),
        (["a", "i", "u", "Done", "1", "2"], False),
        (["a", "i", "u", "Terminated", "1"], False),
    ],
)
def test_rows_of_the_pai_tables_are_told_by_their_state(cells, expected):
    assert pai.is_row(cells) is expected


def test_openb_pods():
    rows = [
        ("a", 0, 0, 2, 1000, "Running", 0, 10),
        ("b", 500, 1024, 1, 999, "Running", 5, 5),
        ("c", 1, 1, 0, 500, "Running", 5, 9),
        ("d", 1, 1, 1, 1000, "Failed", 9, 5),
    ]
    trace = openb.read(csv_of(openb.COLUMNS, *rows))
    assert brief(trace) == [("a", 0, 2, 10), ("b", 5, 1, 1)]
    assert [(job.cpus, job.memory_gb, job.gpu_type) for job in trace.jobs] == [(None, None, ""), (0.5, 1, "")]
    assert trace.dropped == {"no GPUs": 1, "ends before it starts": 1}
    assert trace.report.changed["share of a GPU rounded up to a whole one"] == 1


# --- workloads without run times ---------------------------------------------------------------------------


def gavel_of(job_type, steps=100, scale=1, weight="1", at=0):
    return gavel.read(
        source("\t".join(map(str, (job_type, "c", "d", "n", 1, steps, scale, weight, -1, at))) + "\n")
    )


def test_gavel_work_is_steps_times_batch():
    (job,) = gavel_of("ResNet-50 (batch size 32)", 10, 2, "", 7).jobs
    assert (job.samples, job.model, job.gpus, job.weight, job.duration_s) == (320, "resnet50", 2, 1, None)
    (least,) = gavel_of("ResNet-18 (batch size 1)", 1).jobs
    assert least.samples == 1


def test_gavel_types_with_a_measured_speed_have_a_run_time():
    (job,) = gavel_of("A3C", 7176).jobs
    assert (job.duration_s, job.samples, job.model) == (pytest.approx(1000), None, "")


@pytest.mark.parametrize(
    "job_type", ["ResNet-50", "Recommendation (batch size 3)", "ResNet-50 (batch size x)"]
)
def test_gavel_types_that_nobody_knows(job_type):
    with pytest.raises(InputError, match=r"line 1, field job_type: .* is not a job type of Gavel"):
        gavel_of(job_type)


def test_sia_jobs_larger_than_the_cluster_may_stay_so():
    rows = [("a", 5, "bert", 100, 8), ("b", 6, "ncf", 4, 8)]
    big, small = sia.read(csv_of(sia.COLUMNS, *rows)).jobs
    assert (big.min_gpus, big.max_gpus, small.max_gpus) == (1, 100, 64)
    assert (big.samples, small.samples) == (2 * 88_641, 10 * 4_970_845)


# --- ThetaGPU ----------------------------------------------------------------------------------------------


def theta_of(*rows):
    whole = [(n, 7, 1, gpus, gpus, at, run_s, 3600, "Pass") for n, (at, gpus, run_s) in enumerate(rows)]
    return thetagpu.read(csv_of(thetagpu.COLUMNS, *whole))


def test_the_year_of_thetagpu_begins_at_argonne():
    year = clock_s("2023-01-01 06:00:00")  # midnight there
    trace = theta_of((year - 1, 1, 60), (year, 2, 60), (year + 100, 4, 60))
    assert brief(trace) == [("1", 0, 2, 60), ("2", 100, 4, 60)]
    assert trace.dropped == {"submitted before the year of the log": 1}
    assert trace.origin_s == 6 * 86_400  # a Sunday
    assert {job.tenant for job in trace.jobs} == {"user-7"}


def test_most_jobs_tell_the_year():
    late, early = clock_s("2023-12-31 12:00:00"), clock_s("2024-01-02 12:00:00")
    assert len(theta_of((late, 1, 60), (late, 1, 60), (early, 1, 60)).jobs) == 3
    assert len(theta_of((late, 1, 60), (early, 1, 60), (early, 1, 60)).jobs) == 2


def test_an_empty_thetagpu_log_has_no_jobs():
    with pytest.raises(InputError, match="no job with a GPU in this thetagpu trace"):
        theta_of()


# --- which form it is --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  [", "philly"),
        ('{"job_id": "a", "arrival_s": 0, "gpus": 1, "duration_s": 5}', "jobs"),
        ("gpus,job_id,arrival_s\n1,a,0", "jobs"),
        ("job_id,arrival_s,service_sec,gpu_count\nx,1,2,3", "helios"),
        ("job_id,arrival_s,service_sec,gpu_count\nali-x,1,2,3", "pai"),
        ("job_id,arrival_s,service_sec,gpu_count", "helios"),
        (",".join(pai.TASK_COLUMNS), "pai"),
        (",".join(reversed(pai.JOB_COLUMNS)), "pai"),
        ("a,i,u,Running,1,2", "pai"),
        (",".join((*attempts.COLUMNS, *thetagpu.COLUMNS)), "thetagpu"),
        (",".join((*attempts.COLUMNS, "more")), "philly-attempts"),
        ("\t".join(["x"] * 5 + ["7"] + ["x"] * 4), "gavel"),
    ],
)
def test_forms_are_told_by_their_first_lines(tmp_path, text, form):
    path = tmp_path / "trace"
    path.write_text(text + "\n")
    assert detect(path) == form


@pytest.mark.parametrize(
    "text", ['{"job_id": "a"}', "\t".join(["x"] * 10), "a,i,u,Done,1,2", "submit_time,gpu_num"]
)
def test_forms_that_nobody_knows(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text(text + "\n")
    with pytest.raises(InputError, match="line 1: neither a jobs file nor a trace of a known form"):
        detect(path)


def test_a_jobs_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,arrival_s,gpus,duration_s\na,50,2,5\nb,60,1,0.5\n")
    for format in (None, "jobs"):
        trace = read_trace(path, format)
        assert brief(trace) == [("a", 50, 2, 5), ("b", 60, 1, 0.5)]
        assert (trace.format, trace.report.read, trace.origin_s) == ("jobs", 2, None)
