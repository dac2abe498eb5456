"""A browser for tests of pages: launched once a module, listened to, and asked what hinders."""

import shutil
from contextlib import contextmanager

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--process-per-site")  # pages of one context compile a script they share once

MARKS = [pytest.mark.skipif(BROWSER is None, reason="chromium not installed"),
         pytest.mark.filterwarnings("ignore::DeprecationWarning")]
"""Of a module whose tests open pages."""


@contextmanager
def open_browser():
    """Give a browser; while it is open no event loop can be run beside it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=list(ARGUMENTS))
        yield opened
        opened.close()


def listen_to(page):
    """Return two lists that grow: what a page complains of, and the addresses it asks for."""
    told, asked = [], []
    page.set_default_timeout(600_000)
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    return told, asked


def list_hindrances(page, impacts):
    """Return what stands in the way of a reader, of so great an impact, with all folds open.

    No rule looks at what a plot draws inside its label.
    """
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(Axe().axe_script)
    violations = page.evaluate("""impacts => axe.run({exclude: [[".main-svg"]]}, {
        resultTypes: ["violations"],
        rules: Object.fromEntries(axe._audit.rules.filter(
            one => one.impact && !impacts.includes(one.impact)).map(
            one => [one.id, {enabled: false}]))}).then(found => found.violations)""", impacts)
    return [(one["id"], one["help"], one["nodes"][0]["html"][:200])
            for one in violations if one["impact"] in impacts]
