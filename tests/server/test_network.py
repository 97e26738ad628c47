"""Addresses, and names in the Host header."""

from __future__ import annotations

import contextlib

import pytest

from conftest import complaint
from trainyard.server.network import InUseError, address_of, bind, is_known, is_loopback, url_of


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("127.0.0.1:7410", ("127.0.0.1", 7410)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_read(given, address):
    assert address_of(given) == address


@pytest.mark.parametrize(
    "given", ["", "7410", ":7410", "host", "host:", "host:x", "host:65536", "h:-1", "h:٣"]
)
def test_what_is_no_address_is_refused_in_one_line(given):
    assert complaint(address_of, given).startswith(f"--listen {given}: give HOST:PORT".replace("  ", " "))


def test_a_free_port_is_found_and_no_two_have_it():
    with contextlib.closing(bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert url_of(taken) == f"http://127.0.0.1:{port}"
        assert is_loopback(taken)
        with pytest.raises(InUseError, match=f"--listen 127.0.0.1:{port}: Address already in use"):
            bind("127.0.0.1", port)


def test_all_addresses_are_reached_by_the_one_of_this_machine():
    with contextlib.closing(bind("0.0.0.0", 0)) as taken:
        assert url_of(taken) == f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert not is_loopback(taken)


def test_a_host_that_is_nowhere_is_refused():
    assert complaint(bind, "256.0.0.1", 1) == "--listen 256.0.0.1:1: there is no host of this name"


def test_an_address_of_another_machine_is_refused():
    assert complaint(bind, "192.0.2.1", 1).startswith("--listen 192.0.2.1:1: ")


@pytest.mark.parametrize(
    ("header", "known"),
    [
        ("localhost:7410", True),
        ("LOCALHOST", True),
        ("gpu1:7410", True),
        ("127.0.0.1:7410", True),
        ("10.0.0.7", True),
        ("[::1]:7410", True),
        ("[::1]", True),
        ("evil.example:7410", False),
        ("localhost.evil.example", False),
        ("", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_a_web_page_that_calls_itself_something_else_is_not_known(header, known):
    assert is_known(header, frozenset({"localhost", "gpu1"})) is known
