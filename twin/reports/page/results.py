"""The page of whatever a verb found."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any

from hwmodels.errors import TwinError, check_word
from twin.reports.page.parts import Page


def describe_result(found: Any, command: str = "") -> Page:
    """Return the page of what a verb found.

    Parameters
    ----------
    command
        What made it, to be made again.

    Raises
    ------
    TwinError
        For what has no page.
    """
    name = type(found).__name__
    check_word("no page of", name, _PAGES, TwinError)
    page: Page = resolve_name(f"twin.reports.page.{_PAGES[name]}")(found, command)
    return page


_PAGES: Mapping[str, str] = {
    "Table": "studies:describe_table", "Session": "studies:describe_study",
    "Selection": "selection:describe_selection", "Ported": "portability:describe_port",
    "View": "differences:describe_view", "PublishedView": "differences:describe_published_view",
    "Difference": "differences:describe_difference", "WhatIf": "differences:describe_what_if",
    "Diagnosis": "diagnosis:describe_diagnosis"}
"""By class the "module:function" that describes it, loaded only where one was used."""
