"""Scenario files: YAML by the guarded loader, each key checked, errors naming file and key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twin.errors import ScenarioError
from twin.studies.files import find_file, list_shipped, make_noun, read_mapping
from twin.studies.scenario.scenario import Scenario

SHIPPED = Path(__file__).parent / "files"

LONGEST_HOPS = 1_000_000
"""Hops a scenario may have."""


def list_scenarios() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return list_shipped(SHIPPED)


def load_scenario(name_or_path: str, overrides: Mapping[str, object] | None = None) -> Scenario:
    """Read a scenario file, or a shipped scenario by name.

    Parameters
    ----------
    name_or_path : str
        "keyword_spotting", or a .yaml file.
    overrides : mapping of str to object, optional
        Dotted keys of the file in place of what it says: {"sensor.hop": "10ms"}; entries of a
        list by number (`loads.0.busy`); all below `set.` is one what-if path.

    Raises
    ------
    ScenarioError
        `file:key: reason; accepted ...`.
    """
    path = find_file(name_or_path, SHIPPED, "scenario", ScenarioError)
    document = read_mapping(path, ScenarioError)
    for key, value in (overrides or {}).items():
        _override(document, key, value, path)
    return _check(path, make_noun(Scenario, document, path, ScenarioError, file=path.name))


def _override(document: dict[str, Any], key: str, value: object, path: Path) -> None:
    """Put a value in place of the file's."""
    section, dot, rest = key.partition(".")
    # A what-if path is one key of `set`, dots and all.
    *parents, last = [section, rest] if section == "set" and dot else key.split(".")
    node: Any = document
    for part in parents:
        node = node.setdefault(part, {}) if isinstance(node, dict) else node[
            _entry(node, part, key, path)]
        if not isinstance(node, (dict, list)):
            raise ScenarioError(f"{path.name}:{key}: {part} holds no keys")
    node[_entry(node, last, key, path) if isinstance(node, list) else last] = value


def _entry(entries: list[Any], part: str, key: str, path: Path) -> int:
    """Return which entry of a list a part of a key names."""
    numbers = [str(number) for number in range(len(entries))]
    if part not in numbers:
        raise ScenarioError(f"{path.name}:{key}: {part!r} is no entry of a list; accepted: "
                            + (", ".join(numbers) or "none, the list is empty"))
    return int(part)


def _check(path: Path, scenario: Scenario) -> Scenario:
    """Refuse what no key alone shows."""
    if scenario.governor in ("slowest", "ondemand") and len(scenario.clocks_hz) < 2:
        raise ScenarioError(f"{path.name}:clocks: governor {scenario.governor} chooses of several; "
                            "accepted: two or more frequencies")
    if scenario.duration_us / scenario.sensor.hop_us > LONGEST_HOPS:
        raise ScenarioError(f"{path.name}:duration: more than {LONGEST_HOPS:,} hops; accepted: a "
                            "shorter time, figures are means over it")
    if scenario.duration_us < scenario.sensor.hop_us:
        raise ScenarioError(f"{path.name}:duration: shorter than a hop")
    for load in scenario.loads:
        if load.busy_us > load.period_us:
            raise ScenarioError(f"{path.name}:loads: busy for longer than its period")
    thermal = scenario.thermal
    if thermal is not None and not thermal.ambient_c < thermal.resume_c < thermal.limit_c:
        raise ScenarioError(f"{path.name}:thermal: accepted: ambient_c below resume_c below "
                            "limit_c")
    return scenario
