"""What a page is made of: sections of text, tables and plots, whatever they tell of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hwmodels.files import JsonObject
from hwmodels.frozen import NamedTexts, frozen, record
from hwmodels.quantities import drop_none
from twin.reports.columns import Cell, Column

KINDS = ("predicted", "simulated", "measured", "published")
"""What a figure can be; each has a mark, a hatch and a word, so that colour is never alone."""


@frozen
class Row:
    """Cells of a row, and what folds out below it: name and value."""

    cells: tuple[Cell, ...]
    details: NamedTexts = ()


@frozen
class Table:
    """A table that sorts, and filters where it is long.

    Parameters
    ----------
    name
        Of the page's own, for links.
    columns
        From left to right.
    rows
        As many cells as columns.
    total
        Set below, never sorted; empty for none.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: tuple[Cell, ...] = ()

    @property
    def folds(self) -> bool:
        """Whether a row has details."""
        return any(row.details for row in self.rows)

    @property
    def filters(self) -> bool:
        """Whether it is so long that one looks for a row."""
        return len(self.rows) > 6


@frozen
class Plot:
    """A plot: what plotly draws, and what it says in words.

    Parameters
    ----------
    name
        Of the page's own.
    caption
        The same in a sentence, for who cannot see it; also below the plot.
    traces
        Plotly's `data`.
    layout
        Plotly's `layout`, over that of the page.
    half
        Whether two stand side by side where there is room.
    least_px
        Width below which it scrolls instead of shrinking; 0: it shrinks.
    """

    name: str
    title: str
    caption: str
    traces: tuple[JsonObject, ...]
    layout: JsonObject
    height_px: int = 360
    half: bool = False
    least_px: int = 0


@record
class Pairs:
    """Names and values, one below the other."""

    pairs: NamedTexts


@record
class Notes:
    """Sentences, one an item; "warning" sets them apart, "code" keeps them as commands."""

    notes: tuple[str, ...]
    kind: str = ""


@record
class Section:
    """A part of the page.

    Parameters
    ----------
    name, title
        For links, and as its heading.
    lead
        What it says, in a sentence or two.
    items
        Tables, plots, pairs and notes, in order.
    folded
        Whether it is closed at first: details few look for.
    """

    name: str
    title: str
    items: tuple[Table | Plot | Pairs | Notes, ...]
    lead: str = ""
    folded: bool = False


@record
class Answer:
    """One figure of the answer.

    Parameters
    ----------
    name, value
        "time", "44.7 ms".
    kind
        One of `KINDS`, "" where it is none of them.
    range
        Its interval or what there is room for, "" where not known.
    used
        Of the room or limit, 0 to 1 and above; None without one.
    span
        Ends of the interval and the point, as shares of the scale drawn.
    """

    name: str
    value: str
    kind: str = "predicted"
    range: str = ""
    used: float | None = None
    span: tuple[float, float, float] | None = None


@frozen
class Page:
    """A page.

    Parameters
    ----------
    verdict
        The answer in two words or three.
    tone
        "good", "bad" or "" for the verdict.
    sentence
        The answer in a sentence.
    advice
        The one change that helps most, and by how much; "" where not looked for.
    advises
        What the advice is called.
    sections
        All else.
    """

    title: str
    subtitle: str
    verdict: str
    sentence: str
    sections: tuple[Section, ...]
    tone: str = ""
    advice: str = ""
    advises: str = "What helps most"
    answers: tuple[Answer, ...] = ()


Item = Table | Plot | Pairs | Notes


def make_section(name: str, title: str, *items: Item | None, lead: str = "",
                 folded: bool = False) -> Section:
    """Return a section of what there is: an item that is None is omitted."""
    return Section(name, title, tuple(drop_none(items)), lead, folded)


def present(sections: Iterable[Section | None]) -> tuple[Section, ...]:
    """Return the sections there is something in."""
    return tuple(drop_none(sections))


def describe_warnings(remarks: Iterable[str]) -> Section | None:
    """Return the section of warnings, each once; None where there are none."""
    distinct = tuple(dict.fromkeys(remarks))
    return make_section("warnings", "Warnings",
                        Notes(distinct, kind="warning")) if distinct else None


def make_table(name: str, caption: str, columns: Iterable[Column | None], nouns: Iterable[Any], *,
               details: Callable[[Any], Iterable[tuple[str, str]]] = lambda noun: (),
               total: Sequence[str] = ()) -> Table:
    """Return a table with a row for each noun, and texts below it; a column may be None."""
    shown = tuple(drop_none(columns))
    return Table(name=name, caption=caption, columns=shown, rows=tuple(
        Row(cells=tuple(column.cell(noun) for column in shown), details=tuple(details(noun)))
        for noun in nouns), total=tuple(Cell(text) for text in total))


def notes(*texts: str, kind: str = "") -> tuple[Notes, ...]:
    """Return sentences as an item; nothing where there are none."""
    return (Notes(notes=texts, kind=kind),) if texts else ()
