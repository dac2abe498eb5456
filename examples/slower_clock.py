"""Does a slower clock save energy? Keyword spotting on an STM32L4R5 at six clocks.

    python examples/slower_clock.py
"""

from __future__ import annotations

import twin

CLOCKS_MHZ = (120, 80, 48, 32, 24, 16)


def main() -> None:
    """Print time, energy and the largest cause at each clock."""
    deployment = twin.deploy("kws", "nucleo_l4r5zi", runtime="x-cube-ai@9.0.0-time")
    print("   MHz       ms       uJ  largest cause")
    for clock_mhz in CLOCKS_MHZ:
        changed = deployment.replace({"clocks.cpu.frequency_hz": f"{clock_mhz}MHz"})
        prediction = twin.predict(changed)
        causes = prediction.bill.causes()
        largest = max(causes, key=lambda cause: prediction.bill.cycles(prediction.clock, cause))
        energy = "not known" if prediction.energy_uj is None else f"{prediction.energy_uj:8.0f}"
        print(f"{clock_mhz:6} {prediction.time_us / 1e3:8.1f} {energy} {largest:>14}")


if __name__ == "__main__":
    main()
