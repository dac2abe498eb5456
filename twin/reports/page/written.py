"""A page as text to read and to print: Markdown, and PDF, on one page or whole.

What HTML draws as plots stands as the sentence each plot says; a PDF of a deployment has its
pictures, too, drawn as for `--plot`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hwmodels.errors import escape, need_extra
from twin.reports.columns import Column
from twin.reports.page.page import Ours, fill_template
from twin.reports.page.parts import Notes, Page, Pairs, Plot, Section, Table
from twin.reports.tables import parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = ("short", "full")
"""One page, or all there is."""

SHORT_ROWS = 8
"""Rows of a table where one page is asked for."""

SHORT_NOTES = 10
"""Notes of a list where one page is asked for."""

SHORT_SECTIONS = 3
"""Sections of which a short report shows the first table: those nearest the answer."""

HANDLING = "A header sorts"
"""How a lead begins that says how to handle a table on a screen."""

PAPER_IN = (8.27, 11.69)
"""A4, in inches."""

LINES, COLUMNS = 70, 98
"""Of a printed page of text."""

FOLDED = 20
"""Characters of a column of text that is folded, at the least."""

ANSWERS = (Column(), Column(), Column("interval, or room"))


def render_markdown(page: Page, length: str = "full") -> str:
    """Write a page as Markdown.

    Parameters
    ----------
    length
        Of `LENGTHS`.

    Returns
    -------
    str
        CommonMark with tables; text out of files is escaped, so that it is text.
    """
    return fill_markdown(
        "page.md", page=page, sections=_choose(page, length), answer_columns=ANSWERS, answers=[
            [answer.name, answer.value + (f" ({answer.kind})" if answer.kind else ""), answer.range]
            for answer in page.answers],
        list_cells=partial(_list_cells, length=length),
        count_left=lambda table: 0 if length == "full" else max(0, len(table.rows) - SHORT_ROWS),
        ).rstrip() + "\n"


def fill_markdown(name: str, **values: Any) -> str:
    """Return a template of Markdown with values, whose texts are text."""
    return fill_template(name, lambda text: Ours(write_text(text)), **values,
                         cell=lambda text: Ours(write_text(text).replace("|", "\\|") or " "))


def _choose(page: Page, length: str) -> list[Section]:
    """Return the sections of a report: of a short one warnings, and the first that have tables."""
    chosen = [replace(one, lead="") if one.lead.startswith(HANDLING) else one
              for one in page.sections]
    if length == "full":
        return chosen
    tables = [one for one in chosen if not one.folded and one.title != "Sources"
              and any(isinstance(item, Table) for item in one.items)]
    return [*tables[:SHORT_SECTIONS - 1], *(one for one in chosen if one.name == "warnings")]


def _list_cells(table: Table, length: str) -> list[tuple[str, ...]]:
    """Return what stands in the rows that are shown, and in their sum."""
    rows = [row.cells for row in (table.rows if length == "full" else table.rows[:SHORT_ROWS])]
    return [tuple(cell.text for cell in cells)
            for cells in (*rows, *((table.total,) if table.total else ()))]


def write_text(text: str) -> str:
    """Return text that says nothing to a Markdown reader or a terminal but itself."""
    escaped = escape(text)
    for sign in "\\`*[]<>":
        escaped = escaped.replace(sign, f"\\{sign}")
    return escaped


def render_pdf(page: Page, length: str = "full",
               pictures: Sequence[Callable[[], Figure | None]] = ()) -> bytes:
    """Write a page as PDF: pages of text, then pictures.

    Parameters
    ----------
    length
        Of `LENGTHS`; a short one is a single page, without pictures.
    pictures
        Each draws one, or returns None.

    Raises
    ------
    ToolMissingError
        When matplotlib is not installed.
    """
    with need_extra("pictures", "matplotlib", "plot"):
        import matplotlib
        from matplotlib.backends.backend_pdf import PdfPages
    from twin.reports.figures.canvas import make_all_plain

    content = io.BytesIO()
    metadata: dict[str, Any] = {"CreationDate": None, "Title": escape(page.title)}
    style: Any = {"pdf.fonttype": 42, "text.usetex": False, "text.parse_math": False}
    with matplotlib.rc_context(style), PdfPages(content, metadata=metadata) as book:
        lines = list_lines(page, length)
        if length == "short":
            rest = len(lines) - LINES
            lines = lines if rest <= 0 else [*lines[:LINES - 1], (
                f"{rest + 1} more lines: --length full", True)]
        for start in range(0, len(lines), LINES):
            book.savefig(_draw_lines(lines[start:start + LINES]))
        for draw in pictures if length == "full" else ():
            figure = draw()
            if figure is not None:
                make_all_plain(figure)
                book.savefig(figure)
    return content.getvalue()


def _draw_lines(lines: Sequence[tuple[str, bool]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=PAPER_IN)
    step = 0.94 / LINES
    for place, (text, bold) in enumerate(lines):
        figure.text(0.06, 0.97 - step * (place + 1), text, family="monospace", fontsize=7.6,
                    fontweight="bold" if bold else "normal", parse_math=False)
    return figure


def list_lines(page: Page, length: str) -> list[tuple[str, bool]]:
    """Return lines of a page, none wider than the paper, and whether each is set bold."""
    from rich.console import Console

    console = Console(width=COLUMNS, markup=False, highlight=False, emoji=False)
    drawn = console.render_lines(parts.Group(*_list_parts(page, length)), pad=False)
    return [(escape("".join(segment.text for segment in line)).rstrip(),
             any(segment.style is not None and bool(segment.style.bold) for segment in line))
            for line in drawn]


def _list_parts(page: Page, length: str) -> Iterator[parts.Content]:
    """Yield what a page says, as parts of a printed report."""
    yield from (parts.Text(page.title, "bold"), page.subtitle, "",
                parts.Text(f"{page.verdict}. {page.sentence}", "bold"), "")
    yield parts.Table(columns=[Column()] * 4, headed=False, rows=[
        ((one.name, one.value, one.kind, one.range), "") for one in page.answers])
    if page.advice:
        yield from ("", f"{page.advises}: {page.advice}")
    for section in _choose(page, length):
        yield ""
        yield parts.Text(section.title, "bold")
        yield from filter(None, [section.lead])
        for item in section.items:
            yield ""
            if isinstance(item, Plot):
                yield f"{item.title}: {item.caption}"
            elif isinstance(item, Pairs):
                yield from (f"{name}: {value}" for name, value in item.pairs)
            elif isinstance(item, Notes):
                shown = item.notes if length == "full" else item.notes[:SHORT_NOTES]
                left = len(item.notes) - len(shown)
                yield from (f"- {one}" for one in shown)
                yield from [f"- {left} more: --length full"] * bool(left)
            else:
                yield item.caption
                yield fit_paper(item.columns, _list_cells(item, length))


def fit_paper(columns: Sequence[Column], rows: Sequence[tuple[str, ...]]) -> parts.Table:
    """Return a table without the last columns for which there is no room even if all are folded."""
    widths = [min(FOLDED, max(map(len, column))) for column in zip(
        (one.header for one in columns), *rows, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > COLUMNS:
        widths.pop()
    return parts.Table(columns=[*columns[:len(widths)]],
                       rows=[(cells[:len(widths)], "") for cells in rows])
