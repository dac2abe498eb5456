"""`python -m twin` and `twin`: the command line, also when interrupted while it still loads."""

from __future__ import annotations

import importlib.util
import sys

PACKAGES = ("hwmodels", "calibration")
BROKEN_INSTALLATION = 2


def main() -> None:
    """Run the command line of this process and exit with its code."""
    leftovers = find_leftovers()
    if leftovers:
        print(f"error: {', '.join(leftovers)}: left by an earlier installation, without sources, "
              "and found before them; remove it and install again", file=sys.stderr)
        sys.exit(BROKEN_INSTALLATION)
    try:
        from twin.cli import app

        app()
    except KeyboardInterrupt:  # before the command line could take it
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def find_leftovers() -> list[str]:
    """Folders Python takes for our packages though they hold no sources."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    return [folder for spec in specs if spec is not None and spec.origin is None
            for folder in list(spec.submodule_search_locations or ())[:1]]


if __name__ == "__main__":
    main()
