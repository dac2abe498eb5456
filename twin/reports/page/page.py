"""A page as HTML: one file that needs no network, and could not use one.

Its policy (Content-Security-Policy) lets run only the scripts it was written with, by their hash,
and lets it load nothing. Text is escaped wherever it comes from: names in files are not ours.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from hwmodels.errors import escape
from twin.reports.page.parts import Page, Plot

FOLDER = Path(__file__).parent

PACKED = 6
"""Of gzip: the plotting library is packed in each page, and unpacked by the reader's browser."""


def render_page(page: Page) -> str:
    """Write a page as one HTML file.

    Returns
    -------
    str
        The same page gives the same text.
    """
    plots = [item for section in page.sections for item in section.items if isinstance(item, Plot)]
    packed, digest = pack_plotly() if plots else ("", "")
    script = _read("page.js")
    policy = " ".join(f"'sha256-{one}'" for one in (_digest(script), digest) if one)
    return fill_template(
        "page.html", lambda text: escape(text, keep="\n"), page=page, plotly=packed, policy=policy,
        style=Ours(_read("page.css")), script=Ours(script), plots=Ours(_write_data({plot.name: {
            "data": plot.traces, "layout": plot.layout} for plot in plots})))


def fill_template(name: str, write: Callable[[str], str], **values: Any) -> str:
    """Return a template of this folder with values.

    Parameters
    ----------
    write
        Writes each text a template puts in, but ours. What it returns is HTML where it is `Ours`,
        else text, and escaped as such.
    """
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=lambda value: write(value) if isinstance(
            value, str) and not hasattr(value, "__html__") else value)
    templates.tests["a"] = lambda item, kind: type(item).__name__ == kind
    return templates.get_template(name).render(values)


def plain(text: str) -> str:
    """Return text for plotly, which reads some HTML in labels: nothing in it is HTML."""
    return html.escape(escape(text), quote=False)


@lru_cache(maxsize=1)
def pack_plotly() -> tuple[str, str]:
    """Return plotly's script, compressed, as text, and the hash of what it unpacks to."""
    from plotly.offline import get_plotlyjs

    script = get_plotlyjs()
    packed = gzip.compress(script.encode(), compresslevel=PACKED, mtime=0)
    return base64.b64encode(packed).decode(), _digest(script)


class Ours(str):
    """Text the project wrote, which goes onto the page as it is."""

    def __html__(self) -> str:
        """Return it as jinja2 takes what needs no escape."""
        return str(self)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _write_data(data: Any) -> str:
    """Write data for a script element, which no text inside can end or begin."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
