"""The output of processes: kept up to a size, read by offsets, lost without harm when the disk is full."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace

import pytest

from local_cases import PLAIN, SETTINGS, Bench, benches, member, run_of
from trainyard.live.backends.local.logs import read_log, tail_offset
from trainyard.live.backends.local.shim.log import Log

bench = benches(PLAIN)


def whole(path, offset=0):
    """Everything that is there from an offset on, and the offset after it."""
    found = b""
    while True:
        offset, data = read_log(path, offset)
        if not data:
            return offset, found
        found += data


@pytest.fixture
def log(tmp_path):
    return Log(str(tmp_path / "rank-0.log"), 200), tmp_path / "rank-0.log"


def test_what_fits_is_kept_whole(log):
    log, path = log
    for k in range(10):
        log.write(b"%9d\n" % k)
    assert whole(path) == (100, b"".join(b"%9d\n" % k for k in range(10)))
    assert whole(path, 95) == (100, b"   9\n")
    assert whole(path, 100) == whole(path, 100)


def test_a_full_log_drops_its_older_half_and_says_so(log):
    log, path = log
    for k in range(50):
        log.write(b"%9d\n" % k)
    end, found = whole(path)
    assert end > 500  # what was said about it counts, too
    assert len(found) <= 300
    assert found.endswith(b"       49\n")
    said = re.findall(
        rb"\[trainyard: the log was full: of (\d+) bytes before this line at most (\d+) are kept\]", found
    )
    assert said
    numbers = [int(line) for line in found.split(b"\n") if line.strip().isdigit()]
    assert numbers == list(range(numbers[0], 50))


def test_a_reader_that_follows_reads_everything_once(log):
    log, path = log
    offset, found = 0, b""
    for k in range(60):
        log.write(b"%9d\n" % k)
        offset, data = whole(path, offset)
        found += data
    assert [int(line) for line in found.split(b"\n") if line.strip().isdigit()] == list(range(60))


def test_a_reader_that_comes_late_goes_on_with_what_is_there(log):
    log, path = log
    for k in range(60):
        log.write(b"%9d\n" % k)
    first, some = read_log(path, 3)
    assert some
    assert read_log(path, first)[1] != some  # nothing is read twice


def test_while_the_file_is_changed_its_end_is_found_under_the_other_name(log):
    log, path = log
    log.write(b"x" * 50)
    os.rename(path, f"{path}.1")
    assert whole(path, 10) == (50, b"x" * 40)


@pytest.mark.parametrize(("lines", "found"), [(0, b""), (1, b"49\n"), (3, b"47\n48\n49\n"), (10**6, None)])
def test_the_last_lines(log, lines, found):
    log, path = log
    for k in range(50):
        log.write(b"%d\n" % k)
    read = whole(path, tail_offset(path, lines))[1]
    assert read == (found if found is not None else whole(path)[1])
    log.write(b"unfinished")
    if lines:
        assert whole(path, tail_offset(path, 1))[1] == b"unfinished"


def test_nothing_is_there_where_there_was_no_output(tmp_path):
    assert read_log(tmp_path / "none", 7) == (7, b"")
    assert tail_offset(tmp_path / "none", 5) == 0


def test_a_full_disk_loses_output_and_says_how_much_when_there_is_room_again(log, monkeypatch):
    log, path = log
    log.write(b"before\n")
    write, room = os.write, [3]

    def full(descriptor, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        wrote = write(descriptor, data[: room[0]])
        room[0] -= wrote
        return wrote

    monkeypatch.setattr(os, "write", full)
    log.write(b"12345")  # a part of it fits
    log.write(b"6789\n")
    monkeypatch.undo()
    log.write(b"after\n")
    said = b"[trainyard: 7 bytes of output were lost: No space left on device]\n"
    assert whole(path)[1] == b"before\n123" + said + b"after\n"
    assert log.last_line() == "after"


def test_a_job_goes_on_where_its_output_cannot_be_written(bench):
    """Its log is a directory: nothing can be written there, and nobody is stopped by that."""
    directory = bench.directory()
    (directory / "rank-0.log").mkdir(parents=True)
    bench.start(run_of("echo hi; exit 3"))
    ended = bench.ended()
    assert (ended.first.code, ended.first.last_line) == (3, "hi")


def test_the_log_of_a_run_is_turned_while_it_runs(tmp_path):
    bench = Bench(tmp_path, settings=replace(SETTINGS, log_bytes=20_000))
    bench.start(run_of("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done", member(gpus=(0, 1))))
    bench.ended()
    for rank in range(2):
        found = bench.log(rank)
        assert len(found) < 20_000 + 65536
        assert found.endswith(b"line 2999\n")
    bench.close()


def test_output_that_is_no_text_is_kept_and_told_of_all_the_same(bench):
    bench.start(run_of("printf '\\377\\376 it hurts\\n'; exit 3"))
    ended = bench.ended()
    assert bench.log() == b"\xff\xfe it hurts\n"
    assert ended.first.last_line.endswith("it hurts")


def test_a_process_without_a_log_has_no_output(bench):
    bench.start(run_of("exit 0"))
    bench.ended()
    assert (bench.log(7), bench.log(0, server=True)) == (b"", b"")
