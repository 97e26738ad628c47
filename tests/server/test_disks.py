"""SQLite is refused where other hosts could write too."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import complaint
from trainyard.server.disks import file_system_of, refuse_shared_disk

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/ann/fast tmpfs rw 0 0
x@tcp:/l /lustre\\040two lustre rw 0 0
"""


@pytest.fixture
def mounts(tmp_path):
    file = tmp_path / "mounts"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/ann/x", "nfs4"),
        ("/home/ann/fast/x", "tmpfs"),
        ("/homes", "ext4"),
        ("/lustre two/x", "lustre"),
    ],
)
def test_the_nearest_mount_counts(mounts, path, kind):
    assert file_system_of(Path(path), mounts) == kind


def test_a_shared_disk_is_refused_with_what_would_help(mounts):
    line = complaint(refuse_shared_disk, Path("/home/ann/x"), mounts)
    assert line == "/home/ann/x is on nfs4; give --data on a local disk or --store postgresql"
    refuse_shared_disk(Path("/home/ann/fast"), mounts)


def test_the_home_is_written_as_users_do(mounts, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert complaint(refuse_shared_disk, Path("/home/ann/.local/share"), mounts).startswith(
        "~/.local/share is on nfs4; "
    )


def test_a_link_to_a_shared_disk_is_one(mounts, tmp_path):
    (tmp_path / "link").symlink_to("/home/ann")
    assert "is on nfs4" in complaint(refuse_shared_disk, tmp_path / "link", mounts)


def test_where_nobody_says_nothing_is_refused(tmp_path):
    refuse_shared_disk(tmp_path, tmp_path / "no such file")
