"""Machines people ask for that are not modelled: what is missing of them, and what helps."""

from __future__ import annotations

import re
from pathlib import Path

from hwmodels.file_cache import read_yaml_once

_FILE = Path(__file__).parents[1] / "unmodelled.yaml"


def explain_unmodelled(name: str) -> str:
    """Return why a machine of that name is not modelled, and what helps; "" for any other."""
    document = read_yaml_once(_FILE)
    asked = re.sub(r"[^a-z0-9]", "", name.lower())
    for part in document["parts"]:
        if any(asked.startswith(known) for known in part["names"]):
            helps = "; or ".join(document[way] for way in part["helps"])
            return f"not modelled: {part['what']}; {part['missing']}. What helps: {helps}"
    return ""
