"""The policy grammar: names, parameters, defaults, presets, any order of stages, and errors."""

from __future__ import annotations

from itertools import permutations
from typing import Literal

import numpy as np
import pytest

from trainyard.errors import InputError
from trainyard.policy.grammar import parse_policies, parse_policy, split_outside_brackets
from trainyard.policy.order.fifo import Fifo
from trainyard.policy.order.las import Las
from trainyard.policy.order.srtf import Srtf
from trainyard.policy.order.tiresias import Tiresias
from trainyard.policy.parameters import parameters_of
from trainyard.policy.place.pack import Pack
from trainyard.policy.place.spread import Spread
from trainyard.policy.policy import Policy
from trainyard.policy.registry import DEFAULTS, ENTRIES, PRESETS, STAGES, Entry
from trainyard.policy.size.fixed import Fixed
from trainyard.policy.stages import Place, Size
from trainyard.policy.tune.proportional import Proportional


class Both(Size, Place):
    """Stands in for a name that decides size and place together, with parameters of every kind."""

    def __init__(
        self,
        share: float = 0.5,
        steps: int = 3,
        exact: bool = False,
        limit: float | None = None,
        mode: Literal["fast", "slow"] = "fast",
    ) -> None:
        if share > 1:
            raise InputError("share must be at most 1")
        self.given = (share, steps, exact, limit, mode)

    def shapes(self, snapshot, ranked):
        raise AssertionError("nobody decides here")

    def find(self, request, free, nodes, seed):
        raise AssertionError("nobody decides here")


@pytest.fixture
def both(monkeypatch):
    monkeypatch.setitem(ENTRIES, "both", Entry("both", ("size", "place"), Both, "size and place together"))


def kinds(policy):
    return tuple(type(getattr(policy, stage)) for stage in STAGES)


def refused(text, parse=parse_policy):
    with pytest.raises(InputError) as error:
        parse(text)
    return str(error.value)


def test_missing_stages_take_their_defaults():
    assert kinds(parse_policy("fifo")) == (Fifo, Fixed, Pack, Proportional)
    assert kinds(parse_policy("spread")) == (Fifo, Fixed, Spread, Proportional)
    assert kinds(Policy()) == kinds(parse_policy("+".join(DEFAULTS.values())))


@pytest.mark.parametrize("name", ENTRIES)
def test_every_name_makes_a_policy(name):
    entry = ENTRIES[name]
    policy = parse_policy(name)
    assert policy.name == name
    assert all(isinstance(getattr(policy, stage), entry.make) for stage in entry.stages)
    assert entry.line
    assert set(entry.stages) <= set(STAGES)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_stands_for_its_stages(name):
    assert kinds(parse_policy(name)) == kinds(parse_policy(PRESETS[name]))
    assert parse_policy(name).name == name
    assert name not in ENTRIES


def test_stages_come_in_any_order():
    for names in permutations(["las(threshold_gpu_s=5)", "spread", "fixed", "proportional"]):
        assert kinds(parse_policy("+".join(names))) == (Las, Fixed, Spread, Proportional)


def test_a_preset_joins_stages_it_does_not_fill():
    policy = parse_policy("spread+easy")
    assert kinds(policy) == (Fifo, Fixed, Spread, Proportional)
    assert policy.order.fill == "easy"


def test_space_and_capitals_do_not_matter():
    policy = parse_policy("  FIFO ( fill = easy ) +\n Spread ")
    assert kinds(policy)[::2] == (Fifo, Spread)
    assert policy.order.fill == "easy"
    assert kinds(parse_policy("srtf()")) == kinds(parse_policy("srtf"))


def test_parameters_reach_the_stage():
    las = parse_policy("las(queues=3,threshold_gpu_s=3600:36000)").order
    np.testing.assert_allclose(las.limits, [3600, 36000], rtol=1e-5)
    assert las.in_gpu_time
    assert not parse_policy("las(threshold_s=10)").order.in_gpu_time
    assert isinstance(parse_policy("tiresias").order, Tiresias)
    np.testing.assert_allclose(parse_policy("tiresias(threshold_gpu_s=7.5)").order.limits, [7.5], rtol=1e-5)


def test_parameters_of_a_stage_are_known_by_type():
    assert list(parameters_of(ENTRIES["las"].make)) == ["queues", "threshold_gpu_s", "threshold_s"]
    assert parameters_of(ENTRIES["srtf"].make) == {}


@pytest.mark.usefixtures("both")
def test_parameters_of_every_kind():
    assert parse_policy("both").size.given == (0.5, 3, False, None, "fast")
    policy = parse_policy("both(share=-.25, steps=7, exact=true, limit=1e3, mode=slow)")
    assert policy.size.given == (-0.25, 7, True, 1000.0, "slow")
    assert policy.place is policy.size
    assert type(policy.order) is Fifo


@pytest.mark.usefixtures("both")
def test_a_name_of_two_stages_excludes_others_of_both():
    assert refused("both+pack") == (
        "policy 'both+pack': 'both' and 'pack' both fill the place stage; name at most one"
    )
    assert "'fixed' and 'both' both fill the size stage" in refused("fixed+srtf+both")
    assert type(parse_policy("srtf+both").order) is Srtf


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("both(share=x)", "parameter share: 'x' is not a number; give one such as 0.5"),
        ("both(share=nan)", "parameter share: nan is not finite; give one such as 0.5"),
        ("both(share=2)", "policy 'both(share=2)', stage both: share must be at most 1"),
        ("both(steps=2.5)", "parameter steps: '2.5' is not a whole number; give 1 or more"),
        ("both(steps=-2)", "parameter steps: -2 is too small; give 1 or more"),
        ("both(exact=yes)", "parameter exact: 'yes' is not one of true, false"),
        ("both(limit=none)", "parameter limit: 'none' is not a number; give one such as 0.5"),
        ("both(mode=fats)", "parameter mode: 'fats' is not one of fast, slow; did you mean 'fast'?"),
        ("both(stops=3)", "unknown parameter 'stops'; did you mean 'steps'?"),
        ("both(=3)", "unknown parameter ''; known: exact, limit, mode, share, steps"),
        ("both(3)", "'3' is not a parameter; write name=value"),
        ("both(steps=)", "'steps=' is not a parameter; write name=value"),
        ("both(steps=3,)", "'' is not a parameter; write name=value"),
        ("both(steps=3,steps=3)", "parameter 'steps' is given twice; give it once"),
        ("las(threshold_s=1:0)", "parameter threshold_s: 0 is too small; give seconds above 0"),
        ("las(threshold_s=1::2)", "parameter threshold_s: '' is not a number; give seconds above 0"),
        ("las(threshold_s=1,threshold_gpu_s=1)", "las takes threshold_gpu_s or threshold_s, not both"),
        ("las(queues=3,threshold_s=1)", "3 queues need 2 thresholds (a:b:c), 1 given"),
        ("fifo(fill=easy", "a '(' is not closed; add ')'"),
        ("fifo)+(pack", "a ')' has no '('"),
        ("fifo()()", "'fifo()()' is not a stage; write name or name(parameter=value)"),
        ("fifo((fill=easy))", "'fifo((fill=easy))' is not a stage"),
        ("fifo+fifo", "'fifo' and 'fifo' both fill the order stage; name at most one"),
        ("easy+easy", "'easy' and 'easy' both fill the order stage; name at most one"),
        ("fifo++pack", "'' is not a stage; write name or name(parameter=value)"),
        ("fifo pack", "'fifo pack' is not a stage; write name or name(parameter=value)"),
        ("7", "'7' is not a stage"),
        ("spraed", "unknown stage 'spraed'; did you mean 'spread'?"),
        ("esay", "unknown stage 'esay'; did you mean 'easy'?"),
        ("easy(fill=strict)", "preset 'easy' takes no parameters; it stands for fifo(fill=easy)"),
    ],
)
@pytest.mark.usefixtures("both")
def test_errors_say_what_would_be_right(text, says):
    message = refused(text)
    assert message.startswith(f"policy '{text}'")
    assert says in message
    assert "\n" not in message


def test_several_policies():
    policies = parse_policies("fifo, las(queues=3,threshold_s=1:2) ,easy+spread")
    assert [p.name for p in policies] == ["fifo", "las(queues=3,threshold_s=1:2)", "easy+spread"]
    assert refused("fifo,srtf, fifo", parse_policies) == (
        "policy 'fifo' is listed twice; name each policy once"
    )
    for text in ("fifo,,srtf", "fifo,", ", fifo"):
        right = f"policies '{text}': a comma has no policy on one side; leave out the comma"
        assert refused(text, parse_policies) == right


def test_splitting_respects_brackets():
    assert split_outside_brackets("a(b,c(d,e)),f", ",") == ["a(b,c(d,e))", "f"]
    assert split_outside_brackets("", ",") == [""]


def test_a_policy_is_data():
    first, again = parse_policy("srtf+spread"), parse_policy("srtf+spread")
    assert first.order is not again.order
    with pytest.raises(AttributeError):
        first.name = "other"
    assert parse_policy(" srtf ").name == "srtf"
