"""Locks and bill of materials: of what pyproject.toml asks for, by hash, naming no place."""

from __future__ import annotations

import json
import re
import subprocess
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from dependencies import pins

LINE = re.compile(r"([a-z0-9-]+)==([\w.+!-]+) --hash=sha256:([0-9a-f]{64})")


def read_pins(name: str) -> dict[str, tuple[str, str]]:
    lines = [line for line in pins.lock_path(name).read_text().splitlines() if line[0] != "#"]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {match[1]: (match[2], match[3]) for match in found if match}


@pytest.mark.parametrize("name", pins.EXTRAS)
def test_a_lock_pins_all_that_is_asked_for(name):
    pinned = read_pins(name)
    for wish in (*pins.list_wishes(pins.EXTRAS[name]), *pins.BUILD):
        asked = Requirement(wish)
        assert pins.plain(asked.name) in pinned, f"{asked.name} is not in the lock: run `make lock`"
        assert asked.specifier.contains(pinned[pins.plain(asked.name)][0], prereleases=True)
    assert pins.read_head(name)["wanted"] == pins.hash_wanted(), "run `make lock`"


def test_the_demo_runs_on_what_is_tested():
    demo, tested = read_pins("demo"), read_pins("test")
    assert demo.items() <= tested.items() and len(demo) < len(tested)


def test_the_bill_of_materials_is_that_of_the_lock():
    sbom = json.loads(pins.SBOM.read_text())
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.5")
    listed = {one["name"]: (one["version"], one["hashes"][0]["content"])
              for one in sbom["components"]}
    assert listed == read_pins("test")
    assert {one["name"] for one in sbom["components"] if one["scope"] == "required"} \
        == set(read_pins("demo"))
    refs = {one["bom-ref"] for one in sbom["components"]}
    assert all(set(one["dependsOn"]) <= refs for one in sbom["dependencies"])
    own = next(one for one in sbom["dependencies"] if one["ref"].startswith("pkg:pypi/embedded"))
    assert len(own["dependsOn"]) == len(pins.wanted_names())


@pytest.mark.parametrize("path", [pins.lock_path("demo"), pins.lock_path("test"), pins.SBOM,
                                  pins.HERE / "pins.py"], ids=lambda path: path.name)
def test_no_place_is_named(path):
    text = path.read_text()
    assert "://" not in text and "index" not in text.replace("index_", "")


@pytest.fixture
def pip(monkeypatch):
    """Stands in for pip: what it was asked, and what it answers to pinned installs."""
    calls, answer = [], SimpleNamespace(returncode=0, stderr="")

    def run(words, **_options):
        calls.append(words)
        return answer if "--require-hashes" in words else SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(pins, "tell_platform", lambda: pins.read_head("test")["platform"])
    monkeypatch.setattr(pins, "hash_wanted", lambda: pins.read_head("test")["wanted"])
    return SimpleNamespace(calls=calls, answer=answer)


def test_what_is_pinned_is_installed_by_hash(pip, capsys):
    assert pins.install("test") == 0 and capsys.readouterr().err == ""
    pinned, project = pip.calls
    assert "--require-hashes" in pinned and str(pins.lock_path("test")) in pinned
    assert {"--no-deps", "--no-build-isolation", "-e"} < set(project)


@pytest.mark.parametrize("why", ["platform", "wishes", "gone"])
def test_without_a_lock_that_fits_versions_are_free_and_that_is_said(pip, why, monkeypatch, capsys):
    if why == "platform":
        monkeypatch.setattr(pins, "tell_platform", lambda: "PyPy 3.12, Plan9 mips, other libc")
    elif why == "wishes":
        monkeypatch.setattr(pins, "hash_wanted", lambda: "0")
    else:
        pip.answer.returncode, pip.answer.stderr = 1, "x\nERROR: No matching distribution found\n"
    assert pins.install("test") == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("test.lock is not used")
    assert pip.calls[-1][-1].endswith("[test]")


def test_another_archive_than_was_pinned_is_never_installed(pip, capsys):
    pip.answer.returncode = 1
    pip.answer.stderr = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
    assert pins.install("test") == 1 and len(pip.calls) == 1
    assert "DO NOT MATCH" in capsys.readouterr().err
