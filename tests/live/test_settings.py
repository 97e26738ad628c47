"""Settings from a file: any of them, and a clear line about what does not fit."""

from dataclasses import fields

import pytest

from conftest import complaint_about
from trainyard.live.settings import Settings, read_settings
from trainyard.model.rules import Rules


def test_any_of_them_may_be_given(tmp_path):
    (tmp_path / "s.yaml").write_text("grace_s: 5\nmost_starts: 7\n")
    read = read_settings(tmp_path / "s.yaml")
    assert (read.grace_s, read.most_starts, read.kill_s) == (5, 7, Settings().kill_s)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("grace: 5\n", "there is no setting 'grace'"),
        ("grace_s: soon\n", "'soon' does not fit; it must be a number of at least 0"),
        ("grace_s: -1\n", "-1 does not fit; it must be a number of at least 0"),
        ("grace_s: .nan\n", "nan does not fit"),
        ("grace_s: .inf\n", "inf does not fit"),
        ("grace_s: true\n", "True does not fit"),
        ("most_starts: 0\n", "0 does not fit; it must be a whole number of at least 1"),
        ("most_starts: 1.5\n", "1.5 does not fit; it must be a whole number of at least 1"),
        ("[1, 2]\n", "NAME: NUMBER"),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, content, said):
    line = complaint_about(tmp_path / "s.yaml", content, read_settings)
    assert said in line
    assert "s.yaml" in line


def test_the_rules_of_the_core_are_among_them():
    rules = Settings(back_off_s=3.0).rules()
    assert rules["back_off_s"] == 3.0
    assert set(rules) <= {field.name for field in fields(Rules)}
    assert "observe_s" not in rules
