"""What verbs return, as data frames of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hwmodels.errors import need_extra
from twin.errors import UsageError
from twin.pricing.batch import Batch
from twin.pricing.prediction import Prediction
from twin.reports.documents import to_document
from twin.reports.export import layer_rows
from twin.studies.results import Table, list_columns, list_settings

if TYPE_CHECKING:
    import pandas


def to_pandas(result: Any) -> pandas.DataFrame:
    """Return what a verb found as a data frame.

    Parameters
    ----------
    result : Table, Batch, Prediction or list
        Rows are points of a study, its limits, objectives and axes the frame's `attrs`;
        configurations, with `CAUSE.us` and so on and `failure`; layers with the columns of
        layers.csv; or what `twin.list_boards` and the like returned, with the keys of their --json.

    Raises
    ------
    ToolMissingError
        Without the extra "tables".
    UsageError
        For what is not a table.
    """
    with need_extra("data frames", "pandas", "tables"):
        import pandas
    if isinstance(result, Batch):
        return _batch_columns(result, pandas)
    if isinstance(result, Table):
        frame = pandas.DataFrame(map(list_columns, result.rows))
        frame.attrs = list_settings(result)
        return frame
    if isinstance(result, Prediction):
        return pandas.DataFrame(layer_rows(result))
    document = to_document(result)
    if document["kind"] not in document:
        raise UsageError(f"{type(result).__name__}: is not a table; accepted: a Table, a Batch, a "
                         "Prediction, or a list of boards, runtimes, models and so on")
    return pandas.json_normalize(document[document["kind"]])


def _batch_columns(batch: Batch, pandas: Any) -> pandas.DataFrame:
    frame = pandas.DataFrame({name: getattr(batch, name) for name in (
        "time_us", "time_low_us", "time_high_us", "energy_uj", "energy_low_uj", "energy_high_uj",
        "cycles", "ram_bytes", "flash_bytes")})
    for unit in ("us", "cycles", "pj"):
        frame[[f"{cause}.{unit}" for cause in batch.causes]] = getattr(batch, f"cause_{unit}")
    failures = {one.row: str(one.error) for one in batch.failures}
    frame["failure"] = [failures.get(row, "") for row in frame.index]
    return frame
