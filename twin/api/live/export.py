"""States as what gives the same figures elsewhere: command lines, and files of `twin study run`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import yaml

from hwmodels.files import JsonObject
from hwmodels.frozen import frozen
from hwmodels.quantities import list_by_key, write_setting
from twin.api.live.state import State, is_upload

_NAME = "live what-if"


@frozen
class Variant:
    """A state with what it is called.

    Parameters
    ----------
    label : str
        As the page shows it.
    """

    label: str
    state: State


def command_line(state: State, names: Mapping[str, str]) -> str:
    """Return the command that prints the figures of a state.

    Parameters
    ----------
    names : mapping of str to str
        File name by upload.
    """
    words = ["twin", "predict", names.get(state.model, state.model), "-b",
             names.get(state.board, state.board)]
    if state.runtime is not None:
        words += ["--runtime", state.runtime]
    for path, value in state.set.items():
        words += ["--set", write_setting(path, value)]
    if state.temperature == "cold":
        words.append("--cold")
    if state.calibration != "auto":
        words += ["--calibration", state.calibration]
    return shlex.join(words)


def write_studies(variants: Sequence[Variant], names: Mapping[str, str]) -> list[dict[str, str]]:
    """Return study files that hold all variants, one for each model, board and kind of prices.

    Parameters
    ----------
    variants : sequence of Variant
        In order; the first of each file is its baseline.
    names : mapping of str to str
        File name by upload; such files stand beside the study's.

    Returns
    -------
    list of dict
        "file" and its "text".
    """
    groups = list_by_key(
        ((state.model, state.board, state.calibration, state.temperature, state.runtime is None),
         one) for one in variants for state in [one.state])
    found: dict[str, str] = {}
    for group in groups.values():
        document = _write_study(group, names)
        while f"{document['name']}.yaml" in found:
            document["name"] += "_2"
        found[f"{document['name']}.yaml"] = yaml.safe_dump(
            document, sort_keys=False, allow_unicode=True, width=100)
    return [{"file": file, "text": text} for file, text in found.items()]


def _write_study(group: Sequence[Variant], names: Mapping[str, str]) -> JsonObject:
    first = group[0].state
    model, board = names.get(first.model, first.model), names.get(first.board, first.board)
    cases: dict[str, dict[str, str]] = {}
    for one in group:
        label = one.label
        while label in cases:
            label += "'"
        own = {"runtime": one.state.runtime} if (
            one.state.runtime is not None and one.state.runtime != first.runtime) else {}
        cases[label] = {**own, **one.state.set}
    stem = "_".join(name.rpartition(".")[0] if is_upload(key) else name for key, name in (
        (first.model, model), (first.board, board)))
    if first.temperature == "cold":
        stem += "_cold"
    if first.calibration != "auto":
        stem += "_stated"
    document: JsonObject = {
        "schema": 1, "name": stem, "question": f"The variants of a {_NAME}.",
        "models": [model], "boards": [board]}
    if first.runtime is not None:
        document["runtimes"] = [first.runtime]
    document |= {"cases": cases, "temperatures": [first.temperature],
                 "calibration": first.calibration, "objectives": ["time", "energy"]}
    beside = [names[key] for key in (first.model, first.board) if is_upload(key)]
    if beside:
        document["notes"] = [f"Beside this file: {' and '.join(beside)}."]
    return document
