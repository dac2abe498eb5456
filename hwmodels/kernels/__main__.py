"""`python -m hwmodels.kernels`: compile every loop not kept yet, so that no command waits."""

import logging

from hwmodels.kernels.compiled import kept_loops


def main() -> None:
    """Compile, and tell on stderr what is."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    for loop in kept_loops():
        loop.prepare()


if __name__ == "__main__":
    main()
