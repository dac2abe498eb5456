"""`python -m hwmodels.kernels [--all] [FOLDER]`: compile loops, of this platform or all."""

import argparse
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """Compile; 1 where the platform is not known, a tool is missing or a loop is refused."""
    parser = argparse.ArgumentParser(prog="python -m hwmodels.kernels", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--force", action="store_true", help="even where nothing has changed")
    parser.add_argument("--all", action="store_true", help="every platform there is")
    options = parser.parse_args()
    os.environ["NUMBA_OPT"] = "0"  # Read when numba is imported.
    from hwmodels.kernels import library

    if not options.all and not options.force and library.open_library(options.folder)[0]:
        return 0
    try:
        from hwmodels.kernels import build
    except ImportError as error:
        print(f"error: {error}; pip install 'embedded-twin[compile]'", file=sys.stderr)
        return 1
    platforms = list(build.TARGETS) if options.all else [library.name_platform()]
    if platforms[0] not in build.TARGETS:
        print(f"error: no loops for {platforms[0]}; accepted: {', '.join(build.TARGETS)}",
              file=sys.stderr)
        return 1
    began_s = time.monotonic()
    try:
        modules = build.load_modules(library.ROOT / folder for folder in library.FOLDERS)
        made = build.build(build.list_loops(modules), modules, platforms, options.folder)
    except build.BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in made:
        print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")
    print(f"compiled in {time.monotonic() - began_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
