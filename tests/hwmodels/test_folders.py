"""Folders of what is kept: named by a variable, or in the cache of the user."""

from pathlib import Path

import platformdirs
import pytest

from hwmodels.folders import user_folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("TWIN_COUNTS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def counts() -> Path:
    return user_folder("TWIN_COUNTS", "counts")


def test_a_variable_names_it_before_the_cache_does(home, monkeypatch):
    assert counts() == home / ".cache" / "embedded-twin" / "counts"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "xdg"))
    assert counts() == home / "xdg" / "embedded-twin" / "counts"
    monkeypatch.setenv("TWIN_COUNTS", "own")
    assert counts() == Path("own")


def test_it_is_where_the_system_has_caches(home, monkeypatch):
    place = home / "Library" / "Caches" / "embedded-twin"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *_, **__: place)
    assert counts() == place / "counts"


def test_a_user_without_a_home_is_an_error_of_its_own(home, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_cache_path", refuse)
    with pytest.raises(RuntimeError):
        counts()
