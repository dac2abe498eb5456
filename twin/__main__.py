"""`python -m twin` and `twin`: the command line, also when interrupted while it still loads."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process and exit with its code."""
    try:
        from twin.cli import app

        app()
    except KeyboardInterrupt:  # before the command line could take it
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
