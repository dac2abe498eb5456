"""`twin guidelines`: what results of studies say of choosing and changing, as a document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from statistics import median

from hwmodels.board.file import load_board
from hwmodels.files import write_whole
from twin.deployment.deployment import deploy
from twin.pricing.calibrated import predict_calibrated
from twin.reports.guide import write_guide
from twin.studies.guidelines import core_class, learn
from twin.studies.study.session import Session, open_session

MOST_CAUSES = 3
"""Told of a class of hardware."""

Causes = dict[str, list[tuple[str, float, str]]]


def guidelines(folders: Iterable[str | PathLike[str]]) -> str:
    """Return guidelines learnt from finished studies, as Markdown.

    Parameters
    ----------
    folders : iterable of str or path
        Of studies that were run; together of several models and boards.

    Raises
    ------
    StudyError
        For a folder that is none, or too few rows to learn from.
    ToolMissingError
        Without scikit-learn.
    """
    sessions = [open_session(fspath(folder)) for folder in folders]
    guide = learn([(one.study, one.load_results()) for one in sessions])
    return write_guide(guide, list_causes(sessions))


def list_causes(sessions: Iterable[Session]) -> Causes:
    """Return the causes most time goes to, by class of hardware: cause, share, of what."""
    pairs: dict[tuple[str, str], str] = {}
    for one in sessions:
        for row in one.load_results().predicted:
            case = dict(row.inputs).get("case")
            if case is None or (one.study.finding and case == one.study.finding.baseline):
                pairs.setdefault((row.model, row.board), row.runtime)
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (model, board), runtime in pairs.items():
        made = predict_calibrated(deploy(model, load_board(board), runtime=runtime))
        lines = [line for line in made.bill.lines if line.clock == "cpu"]
        total = sum(line.cycles for line in lines)
        if not total:
            continue
        told: dict[str, float] = defaultdict(float)
        for line in lines:
            told[line.cause] += line.cycles / total
        for cause, share in told.items():
            shares[core_class(board)][cause].append(share)
    runs = {core: max(map(len, own.values())) for core, own in shares.items()}
    return {core: sorted(((cause, median([*found, *[0.0] * (runs[core] - len(found))]),
                           f"{runs[core]} predictions (share of core cycles)")
                          for cause, found in own.items()), key=lambda one: -one[1])[:MOST_CAUSES]
            for core, own in shares.items()}


def write_guidelines(folders: Iterable[str | PathLike[str]], path: str | PathLike[str]) -> Path:
    """Write guidelines to a file."""
    target = Path(path)
    write_whole(target, guidelines(folders).encode())
    return target
