"""Pages of the site that are not files of docs: those at the root, the glossary, the reference.

MkDocs calls `on_files` before it reads pages, and `on_page_markdown` with the text of each: links
that lead out of the site are left as the names of the files.
"""

from __future__ import annotations

import html
import inspect
import json
import posixpath
import re
import statistics
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import twin
from hwmodels.quantities import format_energy, format_time
from twin.reports.glossary import load_glossary

ROOT = Path(__file__).parents[2]
MOVED = {
    "README.md": "index.md", "DESIGN.md": "design.md", "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
    "firmware/README.md": "firmware.md", "examples/README.md": "examples.md",
}
"""Files outside docs, and the page each becomes."""

TRUTH = ("board", "quantity", "published", "predicted", "error", "90 % interval", "in interval",
         "library", "network", "how", "row")
"""Columns of the truth board."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
_SEALED = re.compile(r"^\| sealed rows: ([^|]+) \| (\d+) \| ([\d.]+ %) \|(?:[^|]*\|){3} (\d+ %) \|",
                     re.MULTILINE)
_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the pages that are made."""
    made = {page: rewrite_links((ROOT / source).read_text(encoding="utf-8"), source)
            for source, page in MOVED.items()}
    made |= {"glossary.md": write_glossary(), "reference.md": write_reference()}
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def write_truth() -> tuple[str, str]:
    """Return the table of rows of use fit, and medians of sealed ones when they were last judged.

    A cell that sorts by another value than its text has that as `data-key`; truth.js filters.
    """
    results = ROOT / "benchmarks/accuracy/results"
    judged = max(results.glob("*-sealed.txt"))
    latency = judged.read_text(encoding="utf-8").partition("**Energy, calibrated")[0]
    rows = json.loads((results / "truth.json").read_text(encoding="utf-8"))
    lines = [_list_cells(row) for row in rows]
    body = "".join(f"<tr{' class=truth-outside' * ('no' in cells)}>" + "".join(
        f"<td>{html.escape(cell)}</td>" if isinstance(cell, str) else
        f'<td class="truth-number" data-key="{cell[1]:.6g}">{cell[0]}</td>' for cell in cells)
        + "</tr>" for cells in lines)
    error = statistics.median(cells[4][1] for cells in lines)
    inside = sum("yes" in cells for cells in lines)
    head = "".join(f'<th scope="col">{name}</th>' for name in TRUTH)
    sealed = "; ".join(f"{kind}: {number} rows, median error {median}, {covered} in the 90 % "
                       "interval" for kind, number, median, covered in _SEALED.findall(latency))
    return (f'<p class="truth-count" role="status">{len(rows)} of {len(rows)} rows: median error '
            f"{100 * error:.1f} %, {inside} in the 90 % interval ({100 * inside / len(rows):.0f} %)"
            '</p><div class="truth-scroll" tabindex="0"><table class="truth-table"><thead><tr>'
            f"{head}</tr></thead><tbody>{body}</tbody></table></div>",
            f"Sealed rows are shown as medians only, last judged on {judged.name[:10]}: {sealed}.")


def _list_cells(row: dict[str, Any]) -> list[Any]:
    """Return the cells of a row, text or (text, value), in the order of `TRUTH`."""
    write = {"time": format_time, "energy": format_energy}[row["quantity"]]
    published, predicted, low, high = (row[name] for name in (
        "published", "predicted", "low", "high"))
    error = predicted / published - 1
    return [row["board"], row["quantity"], (write(published), published),
            (write(predicted), predicted), (f"{100 * error:+.1f} %", abs(error)),
            (f"{write(low)} to {write(high)}", high / low),
            "yes" if low <= published <= high else "no", row["library"], row["network"],
            row["how"], row["row"]]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of a page of docs with its links as the site has them."""
    if page.file.abs_src_path is None:  # It was made, with its links.
        return markdown
    if page.file.src_uri == "truth.md":
        markdown = markdown.format(*write_truth())
    return rewrite_links(markdown, f"docs/{page.file.src_uri}")


def rewrite_links(text: str, source: str) -> str:
    """Return Markdown with links from a file of the project as links of the site.

    Parameters
    ----------
    text : str
        Of the file.
    source : str
        Its path from the root.
    """
    def rewrite(found: re.Match[str]) -> str:
        mark, words, target, anchor = found[1], found[2], found[3], found[4] or ""
        if "://" in target:
            return found[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if place in MOVED:
            return f"{mark}[{words}]({MOVED[place]}{anchor})"
        if place.startswith("docs/") and (ROOT / place).is_file():
            return f"{mark}[{words}]({place.removeprefix('docs/')}{anchor})"
        return words if words.strip("`") == place else f"{words} (`{place}`)"

    return _LINK.sub(rewrite, text)


def write_glossary() -> str:
    """Return every term of `twin explain`, a heading for each kind."""
    lines = ["# Glossary\n", "`twin explain TERM` says the same at the command line.\n"]
    terms = sorted(load_glossary().values(), key=lambda one: one.term.lower())
    for kind in dict.fromkeys(one.kind for one in terms):
        lines.append(f"## {kind.capitalize()}s\n")
        lines += [_write_term(one) for one in terms if one.kind == kind]
    return "\n".join(lines)


def _write_term(one: Any) -> str:
    parts = [f"**{one.term}**: {' '.join(one.text.split())}"]
    parts += [f"*{label}:* {' '.join(text.split())}" for label, text in (
        ("Equation", one.equation), ("Lever", one.lever), ("Often said", one.myth),
        ("Source", one.source), ("See", ", ".join(one.see))) if text]
    return " ".join(parts) + "\n"


def write_reference() -> str:
    """Return what `import twin` has, each with its signature and its docstring."""
    lines = ["# Python reference\n",
             "What `import twin` has; a name is imported when it is first used. Every command is a "
             "function here.\n"]
    for name in twin.__all__:
        one = getattr(twin, name)
        kind = "class" if inspect.isclass(one) else "def"
        lines.append(f"## {name}\n\n```python\n{kind} {name}{_signature(one)}\n```\n")
        lines.append(_as_markdown(inspect.getdoc(one) or "") + "\n")
    return "\n".join(lines)


def _signature(one: Any) -> str:
    """Return parameters, a line each where there are many; a class lists its own below."""
    if inspect.isclass(one):
        return ""
    signature = inspect.signature(one)
    words = [str(parameter).replace("'", "") for parameter in signature.parameters.values()]
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = str(signature.return_annotation).replace("'", "")
    line = f"({', '.join(words)}) -> {returned}"
    return line if len(line) < 90 else "(\n    " + ",\n    ".join(words) + f",\n) -> {returned}"


def _as_markdown(text: str) -> str:
    """Return a numpydoc docstring: sections as bold lines, parameters as a list."""
    parts = _HEADING.split(text)
    lines = [parts[0].strip(), ""]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += [f"**{title}**", ""]
        if title in ("Parameters", "Returns", "Raises"):
            lines += _as_list(body)
        elif title == "Examples":
            lines += ["```python", body.strip(), "```", ""]
        else:
            lines += [body.strip(), ""]
    return "\n".join(lines)


def _as_list(body: str) -> list[str]:
    """Return `name : type` lines and the text below each as items."""
    items: list[tuple[str, list[str]]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            name, colon, kind = line.partition(" : ")
            items.append((f"- `{name}`" + (f" ({kind})" if colon else ""), []))
        elif line.strip() and items:
            items[-1][1].append(line.strip())
    return [head + (f": {' '.join(lines)}" if lines else "") for head, lines in items] + [""]
