"""Stages of other packages: found by name, listed, and harmless when broken."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Literal

import pytest

from conftest import install_package
from trainyard.cli.main import run
from trainyard.errors import InputError
from trainyard.policy.grammar import parse_policies, parse_policy
from trainyard.policy.parameters import parameters_of, readable
from trainyard.policy.plugins import installed, load
from trainyard.policy.registry import ENTRIES

GOOD = '''
from typing import Literal
from trainyard import Place, ScoreOrder, Size

class Big(ScoreOrder):
    """Most GPUs first.

    More is said below.
    """
    def __init__(
        self, times: float = 1.0, mode: Literal["up", "down"] = "up", limit: int | None = None
    ) -> None:
        self.given = (times, mode, limit)
    def score(self, job):
        return -job.gpus

class Silent(Big):
    pass
Silent.__doc__ = None

class Both(Size, Place):
    """Size and place."""
    def shapes(self, snapshot, ranked):
        return None
    def find(self, request, free, nodes, seed):
        return None

class Needy(Big):
    def __init__(self, times: float) -> None: ...

class Lists(Big):
    def __init__(self, times: list[float] | None = None) -> None: ...

class Bare(Big):
    def __init__(self, times=1.0) -> None: ...

class Half(ScoreOrder):
    """Says nothing."""

number = 7
class Alien:
    """Derives from nothing of ours."""
'''
BROKEN = {
    "absent": ("stages_gone:Big", "it cannot be imported (ModuleNotFoundError: No module named 'stages_gon"),
    "typo": ("stages_good:Bigg", "it cannot be imported (AttributeError: module 'stages_good' has no attri"),
    "crash": ("stages_crash:Big", "it cannot be imported (ZeroDivisionError: division by zero)"),
    "leave": ("stages_leave:Big", "it cannot be imported (SystemExit: 7); repair or uninstall the package"),
    "quit": ("stages_quit:Big", "it cannot be imported (SystemExit); repair or uninstall the package"),
    "alien": ("stages_good:Alien", "it is no stage; derive its class from ScoreOrder, Order, Size"),
    "number": ("stages_good:number", "it is no stage"),
    "half": ("stages_good:Half", "class Half lacks the method 'score'; define it"),
    "needy": ("stages_good:Needy", "no policy can give its parameter 'times'; annotate it with float"),
    "lists": ("stages_good:Lists", "no policy can give its parameter 'times'; annotate it with float"),
    "bare": ("stages_good:Bare", "the types of its parameters are not known ('times'); annotate it"),
}  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that installs a package with these entry points."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "stages_good.py").write_text(GOOD)
    (site / "stages_crash.py").write_text("1 / 0\n")
    (site / "stages_leave.py").write_text("import sys; sys.exit(7)\n")
    (site / "stages_quit.py").write_text("import sys; sys.exit()\n")
    monkeypatch.syspath_prepend(site)

    def install(name="stages", **points):
        install_package(site, name, points)

    yield install
    sys.modules.pop("stages_good", None)


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("nodes: [{count: 1, gpus: 4}]\n")
    (tmp_path / "j.csv").write_text("job_id,arrival_s,gpus,duration_s\na,0,1,10\n")

    def call(*args):
        monkeypatch.setattr(sys, "argv", ["trainyard", *args])
        run()
        return capfd.readouterr()

    return call


def refused(text):
    with pytest.raises(InputError) as error:
        parse_policy(text)
    return str(error.value)


def test_a_stage_is_found_by_name(package):
    package(big="stages_good:Big")
    policy = parse_policy("BIG(times=2, mode=down, limit=3)+spread")
    assert type(policy.order).__name__ == "Big"
    assert policy.order.given == (2.0, "down", 3)
    assert type(policy.place) is ENTRIES["spread"].make
    assert parse_policy("big").order.given == (1.0, "up", None)


def test_the_base_classes_say_which_stages_it_fills(package):
    package(big="stages_good:Big", both="stages_good:Both", silent="stages_good:Silent")
    big, both, silent = (load(plugin) for plugin in installed())
    assert (big.stages, big.line) == (("order",), "Most GPUs first")
    assert (both.stages, both.line) == (("size", "place"), "Size and place")
    assert silent.line == "no description"
    assert "'big' and 'srtf' both fill the order stage" in refused("big+srtf")
    policy = parse_policy("both")
    assert policy.size is policy.place


def test_errors_are_those_of_our_own_stages(package):
    package(big="stages_good:Big")
    assert refused("bigg") == "policy 'bigg': unknown stage 'bigg'; did you mean 'big'?"
    assert (
        refused("big(tims=2)")
        == "policy 'big(tims=2)', stage big: unknown parameter 'tims'; did you mean 'times'?"
    )
    assert "'sideways' is not one of up, down" in refused("big(mode=sideways)")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stage_says_what_is_wrong_and_breaks_nothing_else(package, name):
    value, says = BROKEN[name]
    package("faulty", **{name: value})
    message = refused(f"{name}+spread")
    where = f"stage '{name}' of package 'faulty' (entry point {value}): "
    assert message.startswith(f"policy '{name}+spread': {where}{says}")
    assert "\n" not in message
    assert len(parse_policies("fifo,srtf+spread")) == 2


def test_what_broke_the_import_is_the_cause(package):
    package("faulty", crash="stages_crash:Big")
    with pytest.raises(InputError) as caught:
        parse_policy("crash")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_no_broken_stage_is_offered_instead(package):
    package("faulty", aaa="stages_gone:Big", Aab="stages_good:Big", aac="stages_leave:Big")
    package("good", aad="stages_good:Big")
    assert refused("xyzzy").startswith("policy 'xyzzy': unknown stage 'xyzzy'; known: aad, allox, ")
    assert "did you mean 'aad'?" in refused("aax")


def test_our_own_names_stay_ours(package):
    package("faulty", fifo="stages_good:Big", easy="stages_good:Big")
    assert type(parse_policy("fifo").order) is ENTRIES["fifo"].make
    assert type(parse_policy("easy").order) is ENTRIES["fifo"].make
    assert {plugin.problem for plugin in installed()} == {
        "trainyard itself has this name; the package must choose another one"
    }


def test_a_name_of_two_packages_is_nobodys(package):
    package("one", big="stages_good:Big")
    package("two", big="stages_good:Silent")
    assert [plugin.package for plugin in installed()] == ["one", "two"]
    assert "several packages bring this name; uninstall all but one" in refused("big")


def test_a_name_that_no_policy_can_write_is_broken(package):
    package(**{"Big Jobs": "stages_good:Big"})
    (plugin,) = installed()
    with pytest.raises(InputError, match="no policy can name it"):
        load(plugin)


def test_a_name_in_capitals_is_explained_and_not_offered(package):
    package(Upper="stages_good:Big")
    for written in ("Upper", "upper"):
        assert f"policy '{written}': stage 'Upper' of package 'stages'" in refused(written)
        assert refused(written).endswith("all in lower case")


def test_a_name_in_lower_case_goes_before_the_same_in_capitals(package):
    package("one", Big="stages_good:Silent")
    package("two", big="stages_good:Big")
    assert type(parse_policy("BIG").order).__name__ == "Big"


def test_policies_lists_them_with_their_package(package, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    package("good", big="stages_good:Big")
    package("faulty", absent="stages_gone:Big")
    out, err = command("policies")
    assert "Most GPUs first (package good)" in out
    assert "stage 'absent' of package 'faulty' (entry point stages_gone:Big): it cannot be imported" in out
    assert err == ""
    absent, big = json.loads(command("policies", "--json").out)[-2:]
    assert big == {"name": "big", "stages": ["order"], "package": "good", "line": "Most GPUs first"}
    assert (absent["name"], absent["stages"], absent["package"]) == ("absent", [], "faulty")
    assert "stages_gone" in absent["error"]


def test_a_broken_stage_on_the_command_line_is_one_line_and_exit_code_2(package, command, capfd):
    package("faulty", absent="stages_gone:Big")
    inputs = ["--cluster", "c.yaml", "--jobs", "j.csv", "--json"]
    with pytest.raises(SystemExit) as stopped:
        command("simulate", *inputs, "--policy", "absent")
    out, err = capfd.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("trainyard: error: policy 'absent': stage 'absent' of package 'faulty'")
    assert json.loads(command("simulate", *inputs, "--policy", "srtf").out)["completed"] == 1


def test_only_unknown_names_cost_a_search():
    code = (
        "import sys; from trainyard.policy.grammar import parse_policies; parse_policies('synergy,las+drf');"
        "print('trainyard.policy.plugins' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", ENTRIES)
def test_parameters_of_our_own_stages_are_readable(name):
    assert all(readable(kind) for kind in parameters_of(ENTRIES[name].make).values())


@pytest.mark.parametrize("kind", [list[float], dict, Literal[1, 2], tuple[int, ...], float | list, object])
def test_types_that_the_grammar_cannot_read(kind):
    assert not readable(kind)
