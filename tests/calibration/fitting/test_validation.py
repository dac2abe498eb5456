"""How many independent rows clustered errors are worth, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibration.fitting.validation import effective_count, total_error


@pytest.mark.parametrize("clusters, values, rows", [
    ("aabbcc", [1, 1, 3, 3, 8, 8], 3),  # alike within each cluster: one row a cluster
    ("aabbcc", [1, 3, 1, 3, 1, 3], 6),  # clusters tell nothing
    ("aabbcc", [0] * 6, 3),  # no spread at all: no more than the clusters
    ("abcdef", [1, 2, 3, 4, 5, 6], 6),
    ("aaaaaa", [1, 2, 3, 4, 5, 6], 1),
    # Means 1 and 4 about 2.5: between 2 (1.5^2 + 1.5^2) / 1 = 9, within (1 + 1 + 4 + 4) / 2 = 5,
    # rho (9 - 5) / (9 + 5) = 2/7, 4 / (1 + 2/7).
    ("aabb", [0, 2, 2, 6], 28 / 9),
    # Sizes 3 and 1: size 4 - 10/4 = 1.5; means 1 and 5 about 2: between 3 + 9 = 12, within 2/2.
    ("aaab", [0, 1, 2, 5], 4 / (1 + 0.5 * 11 / 12.5)),
])
def test_clustered_rows_are_worth(clusters, values, rows):
    assert effective_count(clusters, np.array(values, float)) == pytest.approx(rows)


@pytest.mark.parametrize(("concentration", "variance"), [(1.0, 0.05**2), (2.0, 0.06**2 + 0.04**2)])
def test_a_network_in_few_layers_is_off_by_more_and_a_row_as_much(concentration, variance):
    fit = SimpleNamespace(noise=SimpleNamespace(network_sd=0.03, row_sd=0.04))
    assert total_error(fit, concentration) == pytest.approx(variance)
