"""Odd progress files: whatever a job writes there, it hurts nobody."""

from __future__ import annotations

import os

import pytest

from local_cases import PLAIN, benches, member, run_of, until
from trainyard.live.backends.local.look import progress_of
from world_cases import World

bench = benches(PLAIN)

NOTHING = {
    "no JSON": b"epoch 3",
    "half of it": b'{"samples_done": 1',
    "no text": b"\xff\xfe\x00",
    "nothing": b"",
    "a list": b"[1, 2]",
    "a number": b"7",
    "deeply nested": b"[" * 60000,
    "huge": b'{"samples_done": 1}' + b" " * 70000,
}
NO_NUMBERS = ["NaN", "Infinity", "-Infinity", "-1", "-1e300", '"5"', "true", "null", "[1]", "1" + "0" * 400]


@pytest.mark.parametrize("name", NOTHING)
def test_what_cannot_be_understood_says_nothing(tmp_path, name):
    path = tmp_path / "progress.json"
    path.write_bytes(NOTHING[name])
    assert progress_of(path) is None


@pytest.mark.parametrize("number", NO_NUMBERS)
def test_what_is_no_number_says_nothing(tmp_path, number):
    path = tmp_path / "progress.json"
    path.write_text(f'{{"samples_done": {number}, "samples_saved": {number}, "loss": 0.5, "finished": 1}}')
    said = progress_of(path)
    assert (said.samples_done, said.samples_saved, said.loss, said.finished) == (None, None, 0.5, False)


def test_a_loss_may_be_negative(tmp_path):
    path = tmp_path / "progress.json"
    path.write_text('{"samples_done": 3, "loss": -2.5, "finished": true}')
    said = progress_of(path)
    assert (said.samples_done, said.loss, said.finished) == (3.0, -2.5, True)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "link", "none"):
        assert progress_of(tmp_path / name) is None


def test_the_last_word_is_read_even_if_the_file_looks_the_same(bench):
    bench.start(run_of("LOOP", member()))
    bench.started()
    path = bench.layout.progress(bench.seen and next(iter(bench.backend._marked)))
    path.write_text('{"samples_done": 1}')
    os.utime(path, (1, 1))
    key = next(iter(bench.backend._marked))
    until(lambda: bench.look().progress[key].samples_done == 1.0)
    with open(path, "r+") as file:
        file.write('{"samples_done": 2}')
    os.utime(path, (1, 1))
    bench.kill()
    bench.ended()
    assert bench.look().progress[key].samples_done == 2.0


def test_a_controller_goes_on_whatever_jobs_say(tmp_path):
    odd = ("nonsense", '{"samples_done": NaN}', '{"samples_done": -5}', '{"samples_done": 1e999}', "[" * 9999)
    with World(tmp_path) as world:
        for text in odd:
            job = world.submit('printf %s "$SAYS" > $TRAINYARD_PROGRESS', env={"SAYS": text})
            view = world.until(job, "done")
            assert (view["samples_done"], view["attempt"]) == (None, 1)
        job = world.submit("mkfifo $TRAINYARD_PROGRESS; sleep 0.5")
        world.until(job, "done")
