"""`twin explain`: what the words of the reports mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twin.reports.glossary import Entry, find_entry, load_glossary


def explain(term: str) -> Entry:
    """Explain a cause, event or metric of the reports.

    Parameters
    ----------
    term : str
        As "flash_wait" or "IPC".

    Returns
    -------
    Entry
        What it means, how it is computed, what would change it.

    Raises
    ------
    UsageError
        For a word nobody knows, with the nearest ones.
    """
    return find_entry(term)


def list_terms() -> Mapping[str, Entry]:
    """Return every term `explain` knows."""
    return load_glossary()


def list_features() -> Sequence[tuple[str, str, str]]:
    """List the features `--set` and studies switch on: name, what-if paths, what they do."""
    from twin.deployment import features

    return features.list_features()


def list_paths(board: str | None = None) -> Sequence[tuple[str, str, str]]:
    """List every what-if path of `--set`.

    Parameters
    ----------
    board : str, optional
        Name or file of a board, for its own names; by default as board files may have them.

    Returns
    -------
    sequence of (str, str, str)
        Path, what it takes, what it changes.
    """
    from hwmodels.board.catalogue import list_facts
    from hwmodels.board.file import load_board
    from twin.deployment import changes

    if board is not None:
        return list(changes.list_paths_of(load_board(board)))
    return [*changes.list_paths(), *((row.path, row.takes, row.doc) for row in list_facts())]
