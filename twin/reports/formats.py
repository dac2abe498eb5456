"""A prediction in the formats of other tools, chosen by how a file's name ends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name

from hwmodels.files import JsonObject
from twin.documents import dump_document
from twin.errors import UsageError
from twin.pricing.prediction import Prediction
from twin.reports.export import check_place, write_file


def check_format(path: str | Path, ending: str = "") -> str:
    """Return the ending of an export's path, before anything is computed.

    Parameters
    ----------
    ending
        The only one accepted; "": that of a format.

    Raises
    ------
    UsageError
        When no format ends so, or the place cannot be written.
    """
    name, accepted = Path(path).name.lower(), [ending] if ending else [*FORMATS]
    for one in accepted:
        if name.endswith(one) and name != one:
            check_place(path)
            return one
    raise UsageError(f"{path}: a name ends in {', '.join(accepted)}")


def write_format(prediction: Prediction, path: str | Path, ending: str = "") -> Path:
    """Write a prediction in the format of an ending, the path's if none; returns the file."""
    make = resolve_name(f"twin.reports.{FORMATS[ending or check_format(path)]}")
    return write_file(path, dump_document(make(prediction)).encode())


def read_clock() -> datetime:
    """Return when a file is made: SOURCE_DATE_EPOCH where it is set, for the same bytes again."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(stated), UTC) if stated.isdigit() and len(stated) < 12 \
        else datetime.now(UTC).replace(microsecond=0)


def mlia_now(prediction: Prediction) -> JsonObject:
    """Return a prediction as MLIA writes it, made now."""
    from twin.reports.mlia import to_mlia

    return to_mlia(prediction, read_clock())


def bencher_of(prediction: Prediction) -> JsonObject:
    """Return a prediction in Bencher's metric format."""
    from twin.attribution.predicted import side_of_prediction
    from twin.reports.ci import to_bencher

    return to_bencher(side_of_prediction(prediction))


FORMATS: Mapping[str, str] = {
    ".trace.json": "trace:make_trace", ".speedscope.json": "functions:make_speedscope",
    ".mlia.json": "formats:mlia_now", ".node-data.json": "model_explorer:to_node_data",
    ".bencher.json": "formats:bencher_of"}
"""By ending: Perfetto and chrome://tracing, speedscope, MLIA, Model Explorer, Bencher; each is
"module:function" of this package, loaded when it is used."""
