"""Published measurements: what others measured, each row with its source."""

from calibration.datasets.published import PublishedRow, board_settings, published_rows, stand_in
from calibration.datasets.tables import Table, list_tables, read_table

__all__ = [
    "PublishedRow", "Table", "board_settings", "list_tables", "published_rows",
    "read_table", "stand_in",
]
