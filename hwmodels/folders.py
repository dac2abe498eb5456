"""Where what is kept for a user lies."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder(variable: str, name: str) -> Path:
    """Return the folder a variable of the environment names, or one of that name in the cache.

    Raises
    ------
    RuntimeError
        For a user without a home.
    """
    if named := os.environ.get(variable):
        return Path(named)
    import platformdirs

    return platformdirs.user_cache_path("embedded-twin", appauthor=False) / name
