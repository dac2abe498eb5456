"""`python -m hwmodels.kernels`: compile every loop not kept yet, so that no command waits."""

import gc
import logging
import os


def main() -> None:
    """Compile, and tell on stderr what is."""
    gc.disable()  # What translation makes has no cycles worth a look, and soon ends.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Read when numpy is imported; none is used.
    from hwmodels.kernels.compiled import kept_loops

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for loop in kept_loops():
        loop.prepare()


if __name__ == "__main__":
    main()
