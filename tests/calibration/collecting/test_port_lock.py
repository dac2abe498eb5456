"""The lock of a port lies in a folder of its user: what others plant is refused, not emptied."""

import os
import tempfile

import pytest

from calibration.collecting.link import lock_port
from calibration.errors import LinkError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with lock_port("/dev/ttyMADE"):
        pass
    return next(tmp_path.iterdir())


def test_a_planted_link_is_not_followed(folder, tmp_path):
    lock, victim = next(folder.iterdir()), tmp_path / "victim"
    victim.write_text("dear")
    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(LinkError, match="cannot be opened"), lock_port("/dev/ttyMADE"):
        pass
    assert victim.read_text() == "dear"


def test_a_folder_others_can_write_is_refused(folder):
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(LinkError, match="this user alone"), lock_port("/dev/ttyMADE"):
        pass


def test_who_holds_a_port_is_named_where_it_is_known(folder, monkeypatch):
    lock = next(folder.iterdir())
    with lock_port("/dev/ttyMADE"):
        assert lock.read_text() == str(os.getpid())
        with pytest.raises(LinkError, match=f"/dev/ttyMADE is in use by process {os.getpid()}$"), \
                lock_port("/dev/ttyMADE"):
            pass
        lock.write_text("")
        with pytest.raises(LinkError, match=r"in use by process unknown$"), \
                lock_port("/dev/ttyMADE"):
            pass
        lock.write_text("7" * 33)  # no number of a process is as long
        with pytest.raises(LinkError, match=r"in use by process unknown$"), \
                lock_port("/dev/ttyMADE"):
            pass
    assert lock.read_text() == ""
    with lock_port("/dev/ttyOTHER"), lock_port("/dev/ttyMADE"):
        assert len({*folder.iterdir()}) == 2
