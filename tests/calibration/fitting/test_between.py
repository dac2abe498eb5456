"""How far networks lie apart: what one's own rows of one network are widened by for others."""

import numpy as np
import pytest

from calibration.errors import FitError
from calibration.fitting.between import LEFT_OUT_FILE, learn_between, read_between, write_between


def test_of_known_errors_the_root_mean_square_and_the_quantile() -> None:
    errors = np.array([0.03, -0.04] * 10)
    found = learn_between(np.append(errors, np.nan))  # a row left alone by its network has none
    assert found.sd == pytest.approx(np.sqrt((0.03**2 + 0.04**2) / 2))
    # the 19th smallest of 20: ceil(21 x 0.9)
    assert found.reach == pytest.approx(0.04 / found.sd)
    assert (found.count, found.band.down, found.band.basis) == (20, found.band.up, "borrowed")


@pytest.mark.parametrize("errors", [np.zeros(0), np.zeros(20), np.full(8, 0.1)])
def test_too_few_errors_say_nothing(errors: np.ndarray) -> None:
    with pytest.raises(FitError, match="errors on held-out networks: too few"):
        learn_between(errors)


def test_what_is_shipped_is_what_is_written(tmp_path) -> None:
    path = tmp_path / LEFT_OUT_FILE.name
    write_between(path, {name: read_between(name) for name in ("time", "energy")})
    assert path.read_text() == LEFT_OUT_FILE.read_text()
