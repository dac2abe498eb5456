"""A page as text to read and to print: Markdown, and PDF, on one page or whole.

What HTML draws as plots stands as the sentence each plot says; a PDF of a deployment has its
pictures, too, drawn as for `--plot`.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from hwmodels.errors import escape, need_extra
from twin.reports.page.parts import Notes, Page, Pairs, Plot, Section, Table

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
    lines = [f"# {write_text(page.title)}", "", write_text(page.subtitle), "",
             f"**{write_text(page.verdict)}.** {write_text(page.sentence)}", ""]
    lines += write_table(["", "", "interval, or room"], [
        [answer.name, answer.value + (f" ({answer.kind})" if answer.kind else ""), answer.range]
        for answer in page.answers])
    if page.advice:
        lines += [f"**{write_text(page.advises)}:** {write_text(page.advice)}", ""]
    for section in _choose(page, length):
        lines += [f"## {write_text(section.title)}", ""]
        if section.lead and not section.lead.startswith(HANDLING):
            lines += [write_text(section.lead), ""]
        for item in section.items:
            lines += _write_item(item, length)
    return "\n".join(lines).rstrip() + "\n"


def _choose(page: Page, length: str) -> Sequence[Section]:
    """Return the sections of a report: of a short one warnings, and the first that have tables."""
    if length == "full":
        return page.sections
    warned = [one for one in page.sections if one.name == "warnings"]
    chosen = [one for one in page.sections if not one.folded and one.title != "Sources"
            and any(isinstance(item, Table) for item in one.items)]
    return [*chosen[:SHORT_SECTIONS - 1], *warned]


def _write_item(item: Table | Plot | Pairs | Notes, length: str) -> list[str]:
    if isinstance(item, Plot):
        return [f"*{write_text(item.title)}:* {write_text(item.caption)}", ""]
    if isinstance(item, Pairs):
        return [*(f"- {write_text(name)}: {write_text(value)}" for name, value in item.pairs), ""]
    if isinstance(item, Notes):
        mark = "`" if item.kind == "code" else ""
        return [*(f"- {mark}{one if mark else write_text(one)}{mark}" for one in item.notes), ""]
    left = 0 if length == "full" else max(0, len(item.rows) - SHORT_ROWS)
    return [write_text(item.caption), "", *write_table([one.header for one in item.columns],
                                              _list_cells(item, length),
                                              [one.number for one in item.columns]),
            *([f"{left} more rows: --length full", ""] if left else [])]


def _list_cells(table: Table, length: str) -> list[list[str]]:
    """Return what stands in the rows that are shown, and in their sum."""
    rows = [row.cells for row in (table.rows if length == "full" else table.rows[:SHORT_ROWS])]
    return [[cell.text for cell in cells]
            for cells in (*rows, *((table.total,) if table.total else ()))]


def write_table(headers: Sequence[str], rows: Sequence[Sequence[str]],
                numbers: Sequence[bool] = ()) -> list[str]:
    """Return the lines of a Markdown table, and an empty one; `numbers` are set to the right."""
    if not rows:
        return []
    marks = ["---:" if place < len(numbers) and numbers[place] else "---"
             for place in range(len(headers))]
    return [*(f"| {' | '.join(cells)} |" for cells in (
        [_cell(header) for header in headers], marks,
        *([_cell(text) for text in row] for row in rows))), ""]


def _cell(text: str) -> str:
    return write_text(text).replace("|", "\\|") or " "


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
        lines = list(_text_lines(page, length))
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


TextLines = Iterator[tuple[str, bool]]
"""As they stand on paper, and whether each is set bold."""


def _text_lines(page: Page, length: str) -> TextLines:
    """Yield lines of a page, none wider than the paper, and whether each is set bold."""
    yield from _fold(page.title, bold=True)
    yield from _fold(page.subtitle)
    yield "", False
    yield from _fold(f"{page.verdict}. {page.sentence}", bold=True)
    yield "", False
    yield from _align([[one.name, one.value, one.kind, one.range] for one in page.answers])
    if page.advice:
        yield "", False
        yield from _fold(f"{page.advises}: {page.advice}")
    for section in _choose(page, length):
        yield "", False
        yield from _fold(section.title, bold=True)
        if section.lead and not section.lead.startswith(HANDLING):
            yield from _fold(section.lead)
        for item in section.items:
            yield from _item_lines(item, length)


def _item_lines(item: Table | Plot | Pairs | Notes, length: str) -> TextLines:
    yield "", False
    if isinstance(item, Plot):
        yield from _fold(f"{item.title}: {item.caption}")
    elif isinstance(item, Pairs):
        yield from (line for name, value in item.pairs for line in _fold(f"{name}: {value}"))
    elif isinstance(item, Notes):
        notes = item.notes if length == "full" else item.notes[:SHORT_NOTES]
        yield from (line for one in notes for line in _fold(f"- {one}"))
        if len(notes) < len(item.notes):
            yield f"- {len(item.notes) - len(notes)} more: --length full", False
    else:
        yield from _fold(item.caption)
        cells = [[one.header for one in item.columns], *_list_cells(item, length)]
        yield from _align(cells, [one.number for one in item.columns])


def _fold(text: str, *, bold: bool = False) -> TextLines:
    yield from ((line, bold) for line in textwrap.wrap(escape(text), COLUMNS) or [""])


def _align(rows: Sequence[Sequence[str]], numbers: Sequence[bool] = ()) -> TextLines:
    """Yield rows in columns: long text is folded, then the last columns fall away."""
    widths = _fit([max(len(escape(row[place])) for row in rows) for place in range(len(rows[0]))]
                  if rows else [])
    for place, row in enumerate(rows):
        folded = [textwrap.wrap(escape(text), width) or [""]
                  for text, width in zip(row, widths, strict=False)]
        for parts in zip_longest(*folded, fillvalue=""):
            cells = [text.rjust(width) if column < len(numbers) and numbers[column]
                     else text.ljust(width)
                     for column, (text, width) in enumerate(zip(parts, widths, strict=True))]
            yield "  ".join(cells).rstrip(), bool(numbers) and place == 0
        if place and max(map(len, folded), default=0) > 1:
            yield "", False


def _fit(widths: list[int]) -> list[int]:
    """Return widths of columns that fit the paper; those of long text become narrower."""
    while sum(min(width, FOLDED) for width in widths) + 2 * (len(widths) - 1) > COLUMNS:
        widths = widths[:-1]
    while sum(widths) + 2 * (len(widths) - 1) > COLUMNS:
        widest = max(range(len(widths)), key=lambda place: widths[place])
        widths = [width - (place == widest) for place, width in enumerate(widths)]
    return widths
