"""Power over time: read from meters, aligned with the board's marks, integrated per layer."""

from calibration.power_trace.alignment import (
    Alignment,
    align_by_correlation,
    align_by_marks,
    step_profile,
)
from calibration.power_trace.board_energy import energy_samples
from calibration.power_trace.energy import (
    EnergyEstimate,
    PowerSummary,
    difference_repetitions,
    integrate,
    layer_energies,
    summarise_power,
)
from calibration.power_trace.ina226 import Ina226
from calibration.power_trace.live import LiveTrace
from calibration.power_trace.meter_files import METER_FILES, read_meter_file
from calibration.power_trace.repetition import repeat_layers
from calibration.power_trace.trace import METERS, Meter, PowerTrace

__all__ = [
    "Alignment", "align_by_correlation", "align_by_marks", "step_profile",
    "EnergyEstimate", "PowerSummary", "difference_repetitions", "integrate", "layer_energies",
    "summarise_power", "energy_samples", "LiveTrace", "Ina226", "METER_FILES", "read_meter_file",
    "METERS", "Meter", "PowerTrace", "repeat_layers",
]
