"""Install what a lock file pins, by version and hash, or stop and name the package and the reason.

    python dependencies/pins.py install demo|test|docs

With UNPINNED=1 in the environment the lock is not used. Only the standard library and pip are
needed, for nothing else is installed yet.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
EXTRAS = {"demo": "plot", "test": "test", "docs": "docs"}
"""Extra of pyproject.toml by name of the lock file."""

OTHER_ARCHIVE = re.compile(r"DO NOT MATCH THE HASHES.*?\n\s+(\S+==[^\s:]+).*?Got\s+(\w+)", re.S)
NOT_FOUND = re.compile(r"satisfies the requirement ([^\s;]+).*\(from versions: (.*)\)")
NO_HASH = re.compile(r"(?:Hashes are required|pinned with ==).*?\n\s+([^\s;]+)", re.S)
OTHER_PYTHON = r"[ ;]{version} Requires-Python ([^;\n]+)"
"""What pip prints of a package it cannot install."""


def install(name: str) -> int:
    """Install the project and what its lock pins; returns an exit code."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    project = ("-e", f"{ROOT}[{EXTRAS[name]}]")
    # The project comes last and offline: what the lock lacks is an error, not a download.
    source, advice = f"{name}.lock", " (UNPINNED=1 make ... installs any version, unchecked)"
    steps: list[tuple[tuple[str, ...], dict[str, str]]] = [
        (("--require-hashes", "-r", str(HERE / source)), {}),
        (("--isolated", "--no-index", "--no-build-isolation", *project),
         {"PIP_CONFIG_FILE": os.devnull})]
    if os.environ.get("UNPINNED") == "1":
        print(f"UNPINNED=1: {source} is not used, versions and hashes are not checked",
              file=sys.stderr)
        source, advice, steps = "pyproject.toml", "", [(project, {})]
    for options, environment in steps:
        ended = subprocess.run((*pip, "install", "--quiet", "--no-compile", *options), text=True,
                               stderr=subprocess.PIPE, check=False, env=os.environ | environment)
        if ended.returncode:
            print(f"{source}: {explain(ended.stderr, offline=bool(environment))}{advice}",
                  file=sys.stderr)
            return ended.returncode
    return 0


def explain(errors: str, *, offline: bool) -> str:
    """Return package and reason, in one line, from what pip printed."""
    if other := OTHER_ARCHIVE.search(errors):
        return f"{other[1]}: the archive found is not the one pinned, its sha256 is {other[2]}"
    if unpinned := NO_HASH.search(errors):
        return f"{unpinned[1]}: the lock has no hash or no version of it; run `make lock`"
    if missing := NOT_FOUND.search(errors):
        package, versions = missing[1], ", ".join(missing[2].split(", ")[-5:])
        if offline:
            return f"{package}: pyproject.toml asks for it, the lock lacks it; run `make lock`"
        version = re.escape(package.partition("==")[2])
        if other := re.search(OTHER_PYTHON.format(version=version), errors):
            return f"{package}: needs Python {other[1]}, this is {sys.version.split()[0]}"
        return f"{package}: no wheel found for this Python and platform, found: {versions}"
    return " ".join(errors.rpartition("ERROR: ")[2].split())[:300]


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "install" or sys.argv[2] not in EXTRAS:
        sys.exit(f"usage: python {sys.argv[0]} install {'|'.join(EXTRAS)}")
    sys.exit(install(sys.argv[2]))
