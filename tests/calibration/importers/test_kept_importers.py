"""What every importer makes of its logs, whole: samples with units, header, remarks."""

from pathlib import Path

import pytest
from made_logs import LOGS, NEURALSPOT, NEURALSPOT_PMU
from made_outlines import compare_kept, outline

from calibration.importers import import_log

KEPT = Path(__file__).parent / "kept"
CLOCKS_HZ = {NEURALSPOT: 192e6, NEURALSPOT_PMU: 247.17e6}


@pytest.mark.parametrize("form", LOGS)
def test_every_sample_of_a_log(form, tmp_path) -> None:
    found = []
    for text in LOGS[form]:
        path = tmp_path / "log.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        taken = import_log(form, path, board="some_board", model="kws",
                           clock_hz=CLOCKS_HZ.get(text))
        header = {name: getattr(taken.measurement.header, name) for name in (
            "board", "model", "runtime", "temperature", "clocks_hz", "environment", "kind")}
        samples = taken.measurement.samples
        found.append({"header": header, "remarks": taken.remarks, "samples": [
            (one.run, one.layer, one.counter, one.unit, one.value) for one in samples]})
    compare_kept(KEPT / f"{form}.txt", outline(found, 200).replace(str(tmp_path), ""))
