"""Reading and writing files as such: paths that cannot be, and output that is whole or absent."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import complaint
from trainyard.errors import InputError
from trainyard.files.cluster import load_cluster
from trainyard.files.output import out_dir, prepare_out_dir, write_bytes_atomic, write_text_atomic


def test_pydantic_is_imported_only_when_a_file_is_read():
    modules = "cluster, failures, job_check, jobs, output, profiles, snapshot"
    code = f"import sys; from trainyard.files import {modules}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_paths_that_cannot_be_read(tmp_path):
    (tmp_path / "lab.yaml").write_text("x")
    assert complaint(load_cluster, tmp_path) == f"{tmp_path}: this is a directory; name a file"
    near = complaint(load_cluster, tmp_path / "lba.yaml")
    assert near == f"{tmp_path}/lba.yaml: there is no such file; did you mean '{tmp_path}/lab.yaml'?"
    assert complaint(load_cluster, tmp_path / "zz").endswith("zz: there is no such file; check the path")
    nowhere = complaint(load_cluster, tmp_path / "no" / "c.yaml")
    assert nowhere.endswith(f"there is no such file; its directory '{tmp_path}/no' does not exist either")
    below = complaint(load_cluster, tmp_path / "lab.yaml" / "c.yaml")
    assert below.endswith("cannot be read: Not a directory; check the path")
    assert complaint(load_cluster, "/proc/self/mem").startswith("/proc/self/mem: cannot be read: ")


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "out.txt"
    write_text_atomic(path, "first, and long")
    write_text_atomic(path, "né")
    assert path.read_bytes() == "né".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()
    write_bytes_atomic(tmp_path / "ours", b"x")
    modes = {stat.S_IMODE(os.stat(p).st_mode) for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text_atomic(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "x"


def test_a_device_is_written_in_place():
    write_text_atomic(os.devnull, "x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    write_text_atomic(path, "old")

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    assert complaint(write_text_atomic, path, "new") == f"{path}: cannot be written: No space left on device"
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    assert (
        complaint(write_text_atomic, tmp_path, "x")
        == f"{tmp_path}: this is a directory; name a file to write"
    )
    nowhere = complaint(write_text_atomic, tmp_path / "no" / "x", "x")
    assert nowhere == f"{tmp_path}/no/x: there is no directory '{tmp_path}/no'; create it first"
    assert "cannot be written: Not a directory" in complaint(write_text_atomic, tmp_path / "file" / "x", "x")
    assert complaint(write_text_atomic, "/proc/x", "x").startswith("/proc/x: cannot be written: ")


def fail_after(step, path, error):
    """Fail once the output directory is there and something was done with it."""
    with out_dir(path) as made:
        assert made.is_dir()
        step(made)
        raise error


def note_above(directory):
    (directory.parent / "note").touch()


def test_a_failure_takes_away_the_empty_folders_that_were_made(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(KeyboardInterrupt):
        fail_after(Path.is_dir, tmp_path / "there" / "a" / "b", KeyboardInterrupt())
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_failure_leaves_what_was_there_or_was_written(tmp_path):
    (tmp_path / "empty").mkdir()
    assert complaint(fail_after, Path.is_dir, tmp_path / "empty", InputError("later")) == "later"
    assert complaint(fail_after, note_above, tmp_path / "a" / "b", InputError("later")) == "later"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "empty", "note"]
    with out_dir(tmp_path / "c" / "d") as made:
        pass
    assert made.is_dir()


def test_output_directories(tmp_path):
    made = prepare_out_dir(tmp_path / "a" / "b")
    assert made.is_dir()
    assert prepare_out_dir(made) == made
    assert not list(made.iterdir())
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "x"):
        right = f"{path}: this is a file, or below one; name a directory for the output"
        assert complaint(prepare_out_dir, path) == right
    refused = complaint(prepare_out_dir, "/proc/x")
    assert refused.startswith("/proc/x: no files can be written here: ")
    assert refused.endswith("; name another directory")
