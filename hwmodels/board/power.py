"""Supply and currents of a board, and the states it sleeps in."""

from __future__ import annotations

from typing import Annotated

from hwmodels.board.declaration import (
    CURRENT,
    CURRENT_PER_MHZ,
    SHARE,
    SWITCH,
    TEXT,
    VOLTAGE,
    ByScale,
    Choice,
    Key,
    Quantity,
)
from hwmodels.frozen import frozen

REGULATORS = Choice(("ldo", "smps", "none"))
BOUNDARY = Choice(("chip", "board"))
"""Where a current was taken: the supply pins of the chip, or the input of its whole board."""


@frozen
class Power:
    """Supply and currents; None is not known, and energy is then not known either.

    Parameters
    ----------
    efficiency
        Of the SMPS, 0 to 1.
    reference_efficiency
        Of the SMPS at the reference voltage, 0 to 1.
    """

    voltage_v: Annotated[float, Key(
        VOLTAGE, "At the rail the energy is counted at.", section="supply")]
    regulator: Annotated[str, Key(
        REGULATORS, "What makes the core voltage of the rail; none: the core is supplied "
                    "directly.", section="supply", required=True)] = "ldo"
    voltage_scale: Annotated[str, Key(
        TEXT, "Range or scale in force, a key of the tables by scale.",
        section="supply")] = "default"
    core_voltage_v: Annotated[float | None, Key(
        ByScale(VOLTAGE), "Core voltage at that scale.", section="supply")] = None
    efficiency: float | None = None
    reference_voltage_v: Annotated[float, Key(
        VOLTAGE, "Rail voltage the current figures below were taken at; absent: "
                 "`supply.voltage_v`.", section="power", required=False)] = 3.0
    reference_regulator: Annotated[str | None, Key(
        REGULATORS, "Regulator they were taken with; absent: `supply.regulator`.",
        section="power")] = None
    reference_efficiency: float | None = None
    leakage_ma: Annotated[float | None, Key(
        ByScale(CURRENT), "Static current at the reference rail.", section="power")] = None
    clock_tree_ma_per_mhz: Annotated[float | None, Key(
        ByScale(CURRENT_PER_MHZ),
        "Current per megahertz while the core waits (sleep with clocks on).",
        section="power")] = None
    activity_ma_per_mhz: Annotated[float | None, Key(
        ByScale(CURRENT_PER_MHZ),
        "What running code with caches on adds to that, at `reference_ipc`.",
        section="power")] = None
    reference_ipc: Annotated[float | None, Key(
        Quantity(low=0.1, high=1, null=True),
        "Issue cycles per cycle of the code behind the run current; one that starts two "
        "instructions counts once.", section="power")] = None
    stall_share: Annotated[float | None, Key(
        SHARE, "Charge of a cycle the core waits for memory, above the clock tree, as a share of "
               "the mean activity charge per cycle of that code.", section="power")] = None
    boundary: Annotated[str, Key(
        BOUNDARY, "What they supply: the chip at its pins, or the whole board at its input, "
                  "regulators included.", section="power")] = "chip"
    of_networks: Annotated[bool, Key(
        SWITCH, "Whether the run current was measured while networks ran: it is drawn in every "
                "cycle, and no learnt factor is applied.", section="power")] = False
    idle_mw: Annotated[float | None, Key(
        Quantity(low=0, high=1e6, null=True),
        "What the idle board draws; stated where the figures above are what work adds to it, so "
        "that no energy holds it. Its clocks then: their `idle_hz`.", section="power")] = None

    @property
    def counted_v(self) -> float:
        """Voltage its energies are counted at: of its rail, or of the whole board's input."""
        return self.voltage_v if self.boundary == "chip" else self.reference_voltage_v


@frozen
class Idle:
    """What an idle board draws at its clocks; limits are apart where they are not its file's."""

    low_mw: float
    high_mw: float

    @property
    def mw(self) -> float:
        """Midway: no share of static power is likelier than another."""
        return (self.low_mw + self.high_mw) / 2

    def __str__(self) -> str:
        """Write the draw, with limits and what they rest on where they are apart."""
        return f"{self.mw:,.0f} mW" + (
            "" if self.low_mw == self.high_mw else f" ({self.low_mw:.3g} to {self.high_mw:.3g}: "
            "the share that follows clocks is not known)")


@frozen
class SleepState:
    """A state with clocks stopped; None is not known."""

    name: str
    current_ma: Annotated[float | None, Key(
        CURRENT, "Supply current, memory kept where the state keeps it.")] = None
    wake_up_ns: Annotated[float | None, Key(
        Quantity(dimension="ns", low=0, high=1e12, null=True),
        "From the event to the first instruction, clocks not yet raised.")] = None
    keeps_ram: Annotated[bool, Key(SWITCH, "Whether RAM and registers are kept.")] = True
    boundary: Annotated[str, Key(
        BOUNDARY, "What the current supplies: chip or board, as of `power`.")] = "chip"
    voltage_v: Annotated[float | None, Key(
        VOLTAGE, "Of that supply; absent: `supply.voltage_v`.", required=False)] = None
