"""Where what is kept for a user lies."""

from __future__ import annotations

import os
from pathlib import Path

APPLICATION = "embedded-twin"


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

    folder = platformdirs.user_cache_path(APPLICATION, appauthor=False)
    if not folder.exists() and not os.environ.get("XDG_CACHE_HOME"):
        former = Path.home() / ".cache" / APPLICATION  # of earlier releases, on any system
        folder = former if former.exists() else folder
    return folder / name
