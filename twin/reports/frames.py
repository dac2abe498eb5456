"""What verbs return, as data frames of pandas."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hwmodels.errors import check_extra
from twin.errors import UsageError
from twin.prediction.prediction import Prediction

if TYPE_CHECKING:
    import pandas


def to_pandas(result: Any) -> pandas.DataFrame:
    """Return what a verb found as a data frame.

    Parameters
    ----------
    result : Table, Batch, Prediction or list
        Rows are points of a study, configurations, layers with the columns of layers.csv, or what
        `twin.list_boards` and the like returned, with the keys of their --json.

    Raises
    ------
    ToolMissingError
        Without the extra "tables".
    UsageError
        For what is no table.
    """
    check_extra("data frames", "pandas", "tables")
    import pandas

    if hasattr(result, "to_pandas"):
        return result.to_pandas()
    if isinstance(result, Prediction):
        from twin.reports.export import layer_rows

        return pandas.DataFrame(layer_rows(result))
    from twin.reports.documents import to_document

    document = to_document(result)
    if document["kind"] not in document:
        raise UsageError(f"{type(result).__name__}: is no table; accepted: a Table, a Batch, a "
                         "Prediction, or a list of boards, runtimes, models and so on")
    return pandas.json_normalize(document[document["kind"]])


def is_frame(found: Any) -> bool:
    """Whether it is a data frame; pandas is not imported to ask."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(found, pandas.DataFrame)
