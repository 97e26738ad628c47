"""`trainyard profile`: from a running script to a profile that simulates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainyard.cli.main import run
from trainyard.files.profiles import load_profiles
from trainyard.model.profile import Profile
from trainyard.profiling import measure, profiler, share, turns

TRAINYARD = Path(sys.executable).with_name("trainyard")
SCRIPT = """\
import os, sys, time
cpus, most = float(os.environ["TRAINYARD_CPUS"]), float(sys.argv[1])
print("1 samples/s", "2 samples/s", sep="\\n")
while True:
    print(f"{100 * min(cpus, most):.1f} samples/s")
    time.sleep(0.01)
"""
AXIS = ["--dataset-gb", "100", "--sample-kb", "100", "--storage-mbps", "20"]


@pytest.fixture
def command(tmp_path, capfd, monkeypatch):
    """Run a command in this process, on a machine that says it has eight CPUs, and return what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(turns, "WINDOW_S", 0.005)
    monkeypatch.setattr(measure, "lost_share", lambda *_: 0.0)  # its script reports fixed speeds
    for module in (share, profiler):
        monkeypatch.setattr(module, "available_cpus", lambda: list(range(8)))
    (tmp_path / "train.py").write_text(SCRIPT)

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, args)])
        run()
        return capfd.readouterr()

    return call


def profiled(command, most, *options):
    out, err = command(
        "profile", "--seconds", "0.01", *options, "--json", "--", sys.executable, "train.py", most
    )
    assert err == ""
    return json.loads(out)


def refused(command, capfd, *args):
    with pytest.raises(SystemExit) as caught:
        command(*args)
    out, err = capfd.readouterr()
    assert (caught.value.code, out, err.count("\n")) == (2, "", 1)
    return err.removeprefix("trainyard: error: ").rstrip()


def test_a_hungry_script(command):
    found = profiled(command, 3, "--out", "p.yaml")
    measured = {point["cpus"]: point["samples_per_s"] for point in found["points"]}
    assert all(speed == 100 * min(cpus, 3) for cpus, speed in measured.items())
    assert {1, 8} <= set(measured)
    assert len(measured) < 8 == found["grid"]
    assert found["gain"] == 3
    assert found["error"] < 0.1
    assert found["model_error"] < 0.15
    assert "speed depends on CPUs: 3.00x from 1 to 8 CPUs" in found["remarks"]
    profile = load_profiles("p.yaml")["train"]
    assert profile.input.cpu_s_per_sample == pytest.approx(0.01)
    assert profile.compute.per_sample_s == pytest.approx({"GPU": 1 / 300}, rel=1e-5)
    assert profile.tables.cpu_memory == tuple((cpus, 1.0, speed) for cpus, speed in sorted(measured.items()))
    assert profile.fit.samples == len(measured)
    assert profile.fit.worst_error < 0.001


def test_a_speed_that_still_rises_is_said(command):
    said = "speed still rises at 8 CPUs, the most measured: more are simulated as no faster; "
    assert any(line.startswith(said) for line in profiled(command, 8)["remarks"])
    for most in (1, 3, 7):
        assert not any("still rises" in line for line in profiled(command, most)["remarks"])


def test_a_light_script(command):
    found = profiled(command, 1)
    assert found["gain"] == 1
    assert len(found["points"]) == 3
    assert found["model_error"] == pytest.approx(0, abs=1e-5)
    assert "speed does not depend on CPUs: 1.00x from 1 to 8 CPUs" in found["remarks"]
    assert "memory is taken not to matter: no dataset size is given" in found["remarks"]
    assert "cpu_s_per_sample" not in found["profile"].get("input", {})


def test_the_memory_axis(command):
    found = profiled(command, 8, *AXIS, "--cpus", "1,4", "--memory-gb", "0,50,100", "--name", "mine")
    assert found["name"] == "mine"
    assert found["profile"]["tables"]["cpu_memory"] == [
        *([1, 0, 100], [1, 50, 100], [1, 100, 100]),
        *([4, 0, 200], [4, 50, 400], [4, 100, 400]),
    ]
    assert found["profile"]["input"] == pytest.approx(
        {"cpu_s_per_sample": 0.01, "sample_kb": 100, "dataset_gb": 100}
    )
    assert found["error"] is found["model_error"] is None


def test_a_measured_profile_simulates(command):
    profiled(command, 8, *AXIS, "--cpus", "1,4", "--out", "p.json")
    Path("c.yaml").write_text("nodes: [{count: 1, gpus: 2, cpus: 8, memory_gb: 200, storage_mbps: 40}]\n")
    Path("j.csv").write_text("job_id,arrival_s,gpus,samples,model\na,0,1,40000,train\n")
    command("simulate", "--cluster", "c.yaml", "--jobs", "j.csv", "--profiles", "p.json", "--out", "out")
    assert Path("out/jobs.csv").read_text().splitlines()[1].split(",")[3] == "100.0"


def test_profiles_gather_in_one_file(command):
    profiled(command, 1, "--cpus", "1", "--out", "p.yaml", "--name", "one")
    first = load_profiles("p.yaml")["one"]
    profiled(command, 2, "--cpus", "2", "--out", "p.yaml", "--name", "two")
    both = load_profiles("p.yaml")
    assert list(both) == ["one", "two"]
    assert both["one"] == first != Profile("one")


def test_the_table_and_the_picture(command):
    out, err = command(
        *("profile", "--cpus", "1,2", "--seconds", "0.01", *AXIS, "--plot", "p.png", "--out", "p.yaml", "--"),
        *(sys.executable, "train.py", "2"),
    )
    assert err == ""
    assert "200.0" in out
    assert "measured 2 of 2 CPU counts" in out
    assert "written to p.yaml" in out
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_the_dashes_may_be_left_out(command):
    out, _ = command("profile", "--cpus", "1", "--seconds", "0.01", "--json", sys.executable, "train.py", "1")
    assert json.loads(out)["points"][0]["samples_per_s"] == 100


def test_the_default_counts(monkeypatch):
    for most, counts in ((1, [1]), (2, [1, 1.5, 2]), (6, [1, 2, 3, 4, 5, 6])):
        monkeypatch.setattr(profiler, "available_cpus", lambda most=most: list(range(most)))
        assert profiler.default_cpus() == counts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cpus", "9"], "--cpus 9: there are 8 CPUs here; give at most 8"),
        (["--cpus", "0.05,1"], "--cpus 0.05: give 0.1 or more"),
        (["--cpus", "a"], "--cpus 'a': give numbers separated by commas, such as 1,2,4"),
        (["--memory-gb", "-1"], "--memory-gb -1: give 0 or more"),
        (["--cpus", "nan"], "--cpus nan: give 0.1 or more"),
        (["--seconds", "0"], "--seconds 0: give a number above 0, at most 3600"),
        (["--dataset-gb", "5"], "give --sample-kb and --storage-mbps too: the memory axis needs all of "),
        (["--storage-mbps", "0"], "--storage-mbps 0: give a number above 0"),
        (["--memory-gb", "1"], "--memory-gb: memory matters only with --dataset-gb, --sample-kb and "),
        (["--name", ""], "--name is empty; give a name such as resnet, or leave it out"),
        (["--plot", "x.pdf"], "--plot 'x.pdf': only PNG can be drawn; give a name that ends in .png"),
        (["--out", ""], "the name of a file to write is empty; give one such as out.yaml"),
        (["--out", "/proc/x.yaml"], "/proc/x.yaml: cannot be written: "),
        (["--out", "no/p.yaml"], "no/p.yaml: there is no directory 'no'; create it first"),
        (["--out", "c.txt"], "c.txt, line 1, field 7"),
    ],
)
def test_wrong_options(command, capfd, options, said):
    Path("c.txt").write_text("7: 8\n")
    assert refused(command, capfd, "profile", *options, "--", "true").startswith(said)


def test_wrong_scripts(command, capfd):
    missing = refused(command, capfd, "profile", "--", "no-such-thing")
    assert missing == "command 'no-such-thing' not found; check its name and the PATH"
    assert refused(command, capfd, "profile").startswith("COMMAND is missing; give COMMAND")
    crash = [sys.executable, "-c", "raise SystemExit('no data')"]
    said = refused(command, capfd, "profile", "--out", "p.yaml", "--", *crash)
    assert said.endswith("exited with status 1: no data; make it run by itself first")
    assert not Path("p.yaml").exists()


@pytest.fixture
def interruptible():
    """What a shell runs in the background ignores SIGINT, and so would all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_ends_all_copies_of_the_script(tmp_path, kind):
    code = (
        "import os, time; open('pids', 'a').write(f'{os.getpid()} ')\n"
        "while True: print('9 samples/s'); time.sleep(0.1)"
    )
    args = [TRAINYARD, "profile", "--cpus", "0.5,1", "--out", "p.yaml", "--", sys.executable, "-c", code]
    with subprocess.Popen(args, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as running:
        pids = tmp_path / "pids"
        deadline = time.monotonic() + 30
        while not (pids.exists() and len(pids.read_text().split()) == 2) and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(kind)
        out, err = running.communicate()
    assert (running.returncode, out, err) == (130, "", "trainyard: error: interrupted\n")
    for pid in map(int, pids.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not (tmp_path / "p.yaml").exists()


def test_a_real_measurement(tmp_path):
    """One process that counts: a second CPU gains it nothing, whatever else this machine does."""
    code = (
        "import time\nwhile True:\n  n, t = 0, time.perf_counter()\n"
        "  while time.perf_counter() < t + 0.1: n += 1\n"
        "  print(n / (time.perf_counter() - t), 'samples/s')"
    )
    most = min(2, len(share.available_cpus()))
    args = [TRAINYARD, "profile", "--cpus", f"1,{most}", "--seconds", "1", "--json", "--"]
    done = subprocess.run([*args, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 0.4 < json.loads(done.stdout)["gain"] < 2.5
