"""Helpers that several tests share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

import pytest
from hypothesis import settings

from postgres_cases import postgres as postgres
from postgres_cases import url as url
from profile_cases import APART as APART
from profile_cases import PROFILES as PROFILES
from profile_cases import SERVED as SERVED
from recorded_logs import every_log_replays as every_log_replays
from recorded_logs import spoilt as spoilt
from trainyard.cli.main import run
from trainyard.compiled import compiled
from trainyard.core.validate import validate
from trainyard.core.yard import Yard
from trainyard.errors import InputError
from trainyard.model.cluster import Cluster
from trainyard.model.job import Job
from trainyard.model.rules import Rules
from trainyard.policy.grammar import parse_policy
from trainyard.policy.plugins import GROUP
from trainyard.policy.policy import Policy
from trainyard.sim.clock import Simulator
from trainyard.sim.failures import Failure
from trainyard.sim.result import Result
from trainyard.state.snapshot import Snapshot

pytest.register_assert_rewrite("trace_checks")
settings.register_profile("patient", deadline=None)  # a busy machine makes no test fail
settings.load_profile("patient")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background: nobody would hear Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

WITHOUT_TORCH = "not torch"
WHOLE_MODULE = "\npytestmark = pytest.mark.torch\n"
# Reasons that hold on some machines.
MAY_SKIP = ("needs /dev/full", "needs cgroups v1", "needs PostgreSQL", "needs a small tmpfs")
EVENTS = ("submit", "finish", "stopped", "node_failed", "node_repaired", "decide")  # those of a simulation


def pytest_ignore_collect(collection_path, config) -> bool | None:
    """Leave out, with `-m "not torch"`, modules that cannot even be imported without PyTorch."""
    if config.option.markexpr != WITHOUT_TORCH or collection_path.suffix != ".py":
        return None
    return WHOLE_MODULE in collection_path.read_text() or None


def complaint(function, *arguments, **more) -> str:
    """Return the one line that says what is wrong with the input."""
    with pytest.raises(InputError) as caught:
        function(*arguments, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def complaint_about(path, content, load, *arguments) -> str:
    """Return the one line that says what is wrong with a file of this content, its folder left out."""
    path.write_text(content)
    return complaint(load, path, *arguments).replace(f"{path.parent}/", "")


def install_package(site, name, points) -> None:
    """Put the metadata of a package with these stages into a folder of packages."""
    about = site / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{point} = {value}\n" for point, value in points.items())
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")


def unexpected_skips(config) -> list[str]:
    """Say which tests were skipped for a reason that no machine should have."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    return [report.nodeid for report in skipped if not str(report.longrepr[2]).endswith(MAY_SKIP)]


def pytest_sessionfinish(session) -> None:
    """Fail a run that skipped a test: a test that does not run shows nothing."""
    if unexpected_skips(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config) -> None:
    """Say what was not run."""
    if skips := unexpected_skips(config):
        terminalreporter.write_line(f"error: {len(skips)} skipped, which fails the run: {', '.join(skips)}")
    if config.option.markexpr == WITHOUT_TORCH:
        terminalreporter.write_line("Tests that need PyTorch were left out; `make test-torch` runs them.")


def checked(
    cluster: Cluster,
    jobs: Iterable[Job],
    policy: Policy | str = "fifo",
    failures: Iterable[Failure] = (),
    **options: float,
) -> Result:
    """Simulate, and recompute the yard's books from scratch after every event."""
    chosen = parse_policy(policy) if isinstance(policy, str) else policy
    simulator = Simulator(cluster, list(jobs), chosen, Rules(**options), failures)
    if not compiled():  # nothing can be put in between there
        for name in EVENTS:
            _validated_after(simulator.yard, name)
    return simulator.run()


def _validated_after(yard: Yard, name: str) -> None:
    happen = getattr(yard, name)

    def watched(*arguments, **more):
        happen(*arguments, **more)
        validate(yard)

    setattr(yard, name, watched)


def set_numbers(snapshot: Snapshot, job_id: str, **numbers: float) -> None:
    """Set numbers of one job by hand, and let readers of its table notice."""
    record = snapshot.table.of[job_id]
    for name, value in numbers.items():
        setattr(record, name, value)
    snapshot.table.changed.entries.append(record)


def finishes(result: Result) -> dict[str, float]:
    return dict(zip(result.outcomes.job_id, result.outcomes.finish_s.tolist(), strict=True))


def one_by_one(work, tasks, tell):
    """Stand in for `in_parallel`, in this process."""
    answers = {}
    for task in tasks:
        answers[task] = work(task)
        tell(len(answers))
    return answers


def command(monkeypatch, capsys, *words):
    """Run the command line in this process; return exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, words)])
    code = 0
    try:
        run()
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()
