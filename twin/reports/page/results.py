"""The page of whatever a verb found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from hwmodels.errors import TwinError
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
    describe = _PAGES.get(type(found).__name__)
    if describe is None:
        raise TwinError(f"{type(found).__name__}: has no page; accepted: {', '.join(_PAGES)}")
    return describe(found, command)


def _in(module: str, name: str) -> Callable[[Any, str], Page]:
    """Return what describes a result, loaded when it is needed."""
    def describe(found: Any, command: str) -> Page:
        page: Page = getattr(import_module(f"twin.reports.page.{module}"), name)(found, command)
        return page

    return describe


_PAGES: Mapping[str, Callable[[Any, str], Page]] = {
    "Table": _in("studies", "describe_table"), "Session": _in("studies", "describe_study"),
    "Selection": _in("selection", "describe_selection"),
    "Ported": _in("portability", "describe_port"), "View": _in("differences", "describe_view"),
    "PublishedView": _in("differences", "describe_published_view"),
    "Difference": _in("differences", "describe_difference"),
    "WhatIf": _in("differences", "describe_what_if"),
    "Diagnosis": _in("diagnosis", "describe_diagnosis")}
"""By class, whose modules are loaded only where one was used."""
