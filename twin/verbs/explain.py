"""`twin explain`: what the words of the reports mean."""

from __future__ import annotations

from collections.abc import Mapping

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
