"""Commands and controllers of different versions."""

from __future__ import annotations

import pytest

from trainyard.cli.client.versions import check_version, stamped
from trainyard.errors import ControllerError


@pytest.mark.parametrize("theirs", ["0.7.0", "0.7.9", "0.6.1", "0.8.0.dev1"])
def test_one_minor_version_either_way_works(theirs):
    check_version(theirs, "0.7.2")


@pytest.mark.parametrize(("theirs", "series"), [("0.5.9", "0.5"), ("0.9.0", "0.9"), ("1.7.0", "1.7")])
def test_too_old_or_too_new(theirs, series):
    with pytest.raises(ControllerError) as caught:
        check_version(theirs, "0.7.2")
    assert str(caught.value) == f"controller {series}, this command 0.7: install trainyard=={series}.*"
    assert caught.value.code == "version"


@pytest.mark.parametrize("theirs", ["", "seven", "7"])
def test_an_answer_that_is_not_of_a_controller(theirs):
    with pytest.raises(ControllerError, match="version"):
        check_version(theirs, "0.7.2")


def test_an_error_of_another_version_says_so():
    assert stamped("there is no such field", "0.7.1", "0.7.2") == "there is no such field"
    assert stamped("there is no such field", "", "0.7.2") == "there is no such field"
    assert stamped("there is no such field", "0.6.1", "0.7.2") == (
        "there is no such field (controller 0.6.1, this command 0.7.2)"
    )
