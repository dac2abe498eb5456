"""A study as a kept run: its file, with the models and boards it names where it finds them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hwmodels.errors import reworded
from hwmodels.files import DocumentError, read_yaml
from twin.api.sessions.bundle import check_name
from twin.api.sessions.request import make_request
from twin.api.sessions.session import Session, begin_session, end_session, rewrite
from twin.errors import SessionError
from twin.studies.results import Table
from twin.studies.study.session import open_session as open_study

STUDY_FILE = "study.yaml"


def pack_study(folder: Path, scratch: Path, write: Callable[[Table], Any]) -> Session:
    """Return a finished study as a kept run.

    Parameters
    ----------
    write : callable
        Writes a table as a document.

    Raises
    ------
    StudyError, SessionError
        For a study that is not finished, or rests on what cannot travel.
    """
    study = open_study(folder)
    table = study.load_results()
    if any(row.is_program for row in table.rows):
        raise SessionError(f"{folder}: has rows of programs (--elf), which a bundle does not hold; "
                           "accepted: the study run without --elf")
    place = scratch / f"{folder.resolve().name}-files"
    place.mkdir()
    names = _copy_inputs(folder, study.head["inputs"], place)
    request = make_request("study", {"study": str(place)})
    session = begin_session(scratch / folder.resolve().name, request, study.head["commands"][0])
    kept = {old: f"inputs/study/{place.name}/{new}" for old, new in names.items()}
    return end_session(session, rewrite(write(table), lambda one: kept.get(one, one)), {})


def check_files(folder: Path) -> None:
    """Refuse a study of others that names files elsewhere, or code; raises `SessionError`."""
    with reworded(DocumentError, SessionError, f"{folder / STUDY_FILE}: cannot be read: "):
        document = read_yaml(folder / STUDY_FILE)
    if not isinstance(document, dict):
        return
    for key in ("postprocess", "accuracy"):
        if any(".py:" in name for name in _list_texts(document.get(key))):
            raise SessionError(f"{folder / STUDY_FILE}:{key}: names code, which a bundle does not "
                               "run; accepted: twin study run, after reading it")
    for key in ("models", "boards", "calibration", "set", "cases"):
        for name in _list_texts(document.get(key)):
            if "/" in name or "\\" in name:
                check_name(name)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(one)


def _copy_inputs(folder: Path, inputs: Mapping[str, str], place: Path) -> dict[str, str]:
    """Copy a study's file and what it names into a folder; return their names by those of then."""
    document = read_yaml(folder / STUDY_FILE)
    shutil.copyfile(folder / STUDY_FILE, place / STUDY_FILE)
    if document.get("calibration", "auto") not in ("auto", "none"):
        raise SessionError(f"{folder}: its calibration is a file of its own; accepted: studies at "
                           "shipped prices")
    found = {}
    named = [str(name) for key in ("models", "boards")
             for name in (document[key] if isinstance(document[key], list) else [document[key]])]
    for name in named:
        for old, digest in inputs.items():
            kept = folder / "inputs" / f"{digest[:12]}_{Path(old).name}"
            if (old == name or old.endswith(f"/{name}")) and kept.is_file():
                target = place / check_name(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(kept, target)
                found[old] = name
    return found
