"""CPUs and memory of runs: cgroups of version 1 for real, version 2 against files, CPU affinity."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from local_cases import GROUPS, NO_GROUPS, PLAIN, benches, groups_or_skip, member, run_of, until
from trainyard.live.backends.base import RunKey, Shares
from trainyard.live.backends.local.limits import Limits, find_limits, shares_record
from trainyard.live.backends.local.shim.group import Group

bench = benches(PLAIN)
grouped = benches(GROUPS)

SPIN = "echo $$ > $C/pid; while :; do :; done"
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """CPU seconds that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def rate(pid, for_s):
    """CPUs that a process uses."""
    began, used = time.monotonic(), cpu_s(pid)
    time.sleep(for_s)
    return (cpu_s(pid) - used) / (time.monotonic() - began)


def pid_of(bench):
    return int(until(lambda: bench.file("pid").exists() and bench.file("pid").read_text().strip()))


# -- version 1, for real -------------------------------------------------------------------------------------


def test_a_quota_holds_and_is_raised_while_the_job_runs(grouped):
    grouped.start(run_of(SPIN, member(shares=Shares(0.1, 0.0))))
    pid = pid_of(grouped)
    rate(pid, 0.3)  # a first period may have been saved up
    assert rate(pid, 1.0) <= 0.14
    assert grouped.retune(2.0)
    until(lambda: rate(pid, 0.5) > 0.2)  # more than a tenth, whatever else runs here
    assert grouped.retune(0.1)
    until(lambda: rate(pid, 0.5) <= 0.14)


def test_all_processes_of_a_member_share_its_quota(grouped):
    text = f"[ $RANK = 0 ] && {{ {SPIN}; }}; echo $$ > $C/other; while :; do :; done"
    grouped.start(run_of(text, member(gpus=(0, 1), shares=Shares(0.1, 0.0))))
    pid = pid_of(grouped)
    other = int(until(lambda: grouped.file("other").exists() and grouped.file("other").read_text().strip()))
    time.sleep(0.3)
    began, used = time.monotonic(), cpu_s(pid) + cpu_s(other)
    time.sleep(1.0)
    assert (cpu_s(pid) + cpu_s(other) - used) / (time.monotonic() - began) <= 0.14


def test_who_uses_more_memory_than_it_has_is_killed_and_that_is_counted(grouped):
    eats = f"exec {sys.executable} -I -S -c \"b'x' * 400_000_000\""
    grouped.start(run_of(eats, member(shares=Shares(0.0, 0.06))))
    ended = grouped.ended()
    assert (ended.out_of_memory, ended.first.signal) == (True, 9)
    used, had = ended.memory_gb
    assert had == pytest.approx(0.06, rel=0.01)
    assert used == pytest.approx(0.06, rel=0.05)


def test_with_more_memory_the_same_goes_well(grouped):
    eats = f"while [ ! -e $C/go ]; do sleep 0.01; done; exec {sys.executable} -I -S -c \"b'x' * 100_000_000\""
    grouped.start(run_of(eats, member(shares=Shares(0.0, 0.05))))
    grouped.started()
    assert grouped.retune(0.0, 0.4)
    memory = grouped.limits.groups(grouped.layout.title(*grouped.backend._marked[RunKey("1", 1)]))["memory"]
    until(lambda: int((memory / "memory.limit_in_bytes").read_text()) > 0.3e9)
    grouped.file("go").touch()
    ended = grouped.ended()
    assert (ended.out_of_memory, ended.first) == (False, None)


def test_the_groups_are_there_while_it_runs_and_gone_afterwards(grouped):
    grouped.start(run_of(SPIN))
    pid = pid_of(grouped)
    (key,) = grouped.backend._marked[RunKey("1", 1)]
    groups = grouped.limits.groups(grouped.layout.title(key))
    assert all(str(pid) in (group / "cgroup.procs").read_text().split() for group in groups.values())
    grouped.kill()
    grouped.ended()
    assert [group for group in groups.values() if group.exists()] == []


def test_what_is_gone_is_not_retuned(grouped):
    grouped.start(run_of("exit 0"))
    grouped.ended()
    assert not grouped.retune(1.0)


def test_the_line_that_says_what_limits_jobs():
    limits = groups_or_skip()
    assert str(limits).startswith("CPUs and memory by cgroup v1")
    without = str(Limits("cgroup v1", {"cpu": Path("/x")}, ("memory", "pids")))
    assert without == "CPUs by cgroup v1; memory is not limited (no cgroup can be made for memory, pids)"


# -- version 2, against files --------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    """Files as a system with version 2 has them."""
    own = tmp_path / "own"
    own.write_text("0::/user.slice\n")
    group = tmp_path / "user.slice"
    group.mkdir()
    (group / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return own, tmp_path, group


def test_version_2_makes_room_for_groups_below_its_own(tree):
    own, root, group = tree
    limits = find_limits(own, root)
    assert (limits.way, limits.parents) == ("cgroup v2", {"all": group})
    assert str(limits) == "CPUs and memory by cgroup v2 (version 2 is not tried on a real system)"
    assert (group / "trainyard.controller" / "cgroup.procs").read_text() == str(os.getpid())
    assert (group / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_where_version_2_gives_nothing_there_is_affinity(tree):
    own, root, group = tree
    (group / "cgroup.controllers").write_text("cpuset io\n")
    assert find_limits(own, root).way == "affinity"
    assert find_limits(root / "nothing", root).way == "affinity"
    own.write_text("0::/elsewhere\n")
    assert find_limits(own, root).way == "affinity"


def test_a_group_of_others_is_left_as_it_was(tree):
    """A group with other processes in it gives nothing to groups below: the kernel refuses."""
    own, root, group = tree
    (group / "cgroup.subtree_control").mkdir()
    assert find_limits(own, root).way == "affinity"
    assert (group / "cgroup.procs").read_text() == str(os.getpid())


def test_shares_in_the_words_of_version_2(tmp_path):
    path = tmp_path / "run"
    group = Group({"version": 2, "paths": {"all": str(path)}})
    group.share(1.5, 2_000_000_000)
    assert (path / "cpu.max").read_text() == "150000 100000"
    assert (path / "memory.max").read_text() == "2000000000"
    group.share(None, None)
    assert [(path / name).read_text() for name in ("cpu.max", "memory.max")] == ["max 100000", "max"]
    (path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n")
    (path / "memory.max").write_text("2000000000\n")
    (path / "memory.peak").write_text("1999000000\n")
    assert (group.oom_kills(), group.memory()) == (3, [1_999_000_000, 2_000_000_000])
    (path / "cgroup.procs").write_text("0\n17\n4\n")  # 0 stands for one that cannot be seen from here
    assert group.processes() == [4, 17]


# -- affinity ------------------------------------------------------------------------------------------------


def test_without_cgroups_jobs_are_bound_to_the_cpus_that_fewest_use():
    here = sorted(os.sched_getaffinity(0))
    assert str(NO_GROUPS) == "CPUs by affinity only, memory is not limited (no cgroup can be made here)"
    for asked, count in ((0.0, 1), (0.4, 1), (1.0, 1), (1e9, len(here))):
        record = shares_record(NO_GROUPS, Shares(asked, 1.0), [])
        assert record == {"cpu_set": here[:count]}
    if len(here) > 1:
        assert shares_record(NO_GROUPS, Shares(1.0, 1.0), [[here[0]]]) == {"cpu_set": [here[1]]}


def test_affinity_is_that_of_the_workers_and_is_changed_while_they_run(bench):
    here = sorted(os.sched_getaffinity(0))
    bench.start(
        run_of("(while :; do sleep 0.1; done) & echo $! > $C/child; " + SPIN, member(shares=Shares(1.0, 0.0)))
    )
    pid = pid_of(bench)
    child = int(bench.file("child").read_text())
    assert [len(os.sched_getaffinity(each)) for each in (pid, child)] == [1, 1]
    assert bench.retune(len(here))
    until(lambda: [sorted(os.sched_getaffinity(each)) for each in (pid, child)] == [here, here])
