"""`python -m twin` and `twin`: the command line, also when interrupted while it still loads."""

from __future__ import annotations

import gc
import importlib.util
import os
import sys

from twin.interruption import end_interrupted, note_interrupts, was_interrupted

PACKAGES = ("hwmodels", "calibration")
BROKEN_INSTALLATION = 2

COLLECTION = (100_000, 20, 50)
"""Objects made before a look for cycles, and looks before a longer one: nouns are tuples without
cycles, and looking for some among them took a third of a command's time."""

THREADS = "OPENBLAS_NUM_THREADS"
"""How many threads numpy starts when it is imported, which wait for work on their processors: one,
unless the user says otherwise. Products here are small, and processes are what shares long work."""


def main() -> None:
    """Run the command line of this process and exit with its code."""
    leftovers = find_leftovers()
    if leftovers:
        print(f"error: {', '.join(leftovers)}: left by an earlier installation, without sources, "
              "and found before them; remove it and install again", file=sys.stderr)
        sys.exit(BROKEN_INSTALLATION)
    note_interrupts()
    gc.set_threshold(*COLLECTION)
    os.environ.setdefault(THREADS, "1")
    try:
        from twin.cli import VERBS, app

        verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        if verb in VERBS:
            load_early(verb)
        app()
    except KeyboardInterrupt:  # before the command line could take it
        end_interrupted()
    except Exception:
        if was_interrupted():
            end_interrupted()
        raise
    finally:
        gc.freeze()  # Python looks for cycles once more as it ends, among all there is.


def load_early(verb: str) -> None:
    """Load a verb before the command line is read: deep in the stack numpy takes a third longer."""
    from twin.cli import load_verb

    try:
        load_verb(verb)
    except Exception:  # the command line meets it again, and says so
        if was_interrupted():
            raise


def find_leftovers() -> list[str]:
    """Folders Python takes for our packages though they hold no sources."""
    specs = [importlib.util.find_spec(name) for name in PACKAGES]
    return [folder for spec in specs if spec is not None and spec.origin is None
            for folder in list(spec.submodule_search_locations or ())[:1]]


if __name__ == "__main__":
    main()
