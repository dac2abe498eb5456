"""`python -m twin` is the `twin` command."""

from twin.cli import main

if __name__ == "__main__":
    main()
