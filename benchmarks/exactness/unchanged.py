"""Whether a change of the code moved a number: `python -m benchmarks.exactness.unchanged`.

    python -m benchmarks.exactness.unchanged --write before.json     on the old code
    python -m benchmarks.exactness.unchanged --against before.json   on the new code

More than eighty deployments are predicted: networks, boards, runtimes, placements, clocks and
what-ifs, at stated and at learnt prices. What is kept of each is every line of every layer's bill
to the last bit (as a hash), and the totals (to say how far a moved one went). The kept file is
`results/unchanged.json`; a change that is meant to move numbers writes it anew and says why.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import twin
from hwmodels.errors import TwinError

KEPT = Path(__file__).parent / "results" / "unchanged.json"

CORES = ("nucleo_l4r5zi", "nucleo_h7a3zi_q", "nucleo_u575zi_q", "nucleo_f401re", "ek_ra6m4",
         "rpi_pico", "apollo510_evb", "stm32h747i_disco")
"""One board or more of each Cortex-M core."""

RUNTIMES = ("tflm-cmsis-nn", "tflm-reference", "cmsis-nn", "x-cube-ai@9.0", "st-edge-ai")

WHAT_IFS: tuple[tuple[str, str, str, Mapping[str, object]], ...] = (
    ("ic", "nucleo_h7a3zi_q", "cmsis-nn", {"caches.l1d.size_bytes": "32KiB",
                                            "clocks.cpu.frequency_hz": "140MHz"}),
    ("ic", "nucleo_h7a3zi_q", "cmsis-nn", {"caches.l1d.enabled": "false"}),
    ("kws", "nucleo_l4r5zi", "tflm-cmsis-nn", {"memories.flash.read_bytes": "16"}),
    ("kws", "nucleo_l4r5zi", "tflm-cmsis-nn", {"placement.weights": "sram"}),
    ("kws", "nucleo_h7a3zi_q", "cmsis-nn", {"load.dma1.memory": "sram",
                                             "load.dma1.bytes_per_second": "200e6"}),
    ("kws", "nucleo_h7a3zi_q", "cmsis-nn", {"placement.weights_via": "dma1",
                                             "placement.tiles": "dtcm"}),
    ("kws", "stm32n6570_dk", "cmsis-nn", {}),
    ("kws", "stm32n6570_dk", "neural-art", {}),
    ("ic", "stm32n6570_dk", "neural-art", {"npu.units.CONV_ACC.count": "2"}),
    ("ic", "stm32n6570_dk", "neural-art", {"npu.epoch_controller": "true"}),
    ("vww", "stm32n6570_dk", "neural-art", {"offload.host": "depthwise_conv_2d"}),
    ("ad", "stm32n6570_dk", "neural-art", {"placement.weight_bits": "4"}),
    ("kws", "stm32n6570_dk", "neural-art", {"placement.weights": "npu_ram"}),
    ("mobilenet_v2_0.35_96", "stm32h747i_disco", "st-edge-ai", {}),
    ("squeezenet1.1_128", "stm32h747i_disco", "x-cube-ai", {}),
    ("sww", "nucleo_u575zi_q", "tflm-cmsis-nn", {}),
    ("kws", "host", "cmsis-nn", {}),
)


def configurations() -> Iterator[tuple[str, str, str, Mapping[str, object], str, str]]:
    """Yield (model, board, runtime, changes, temperature, calibration)."""
    for board in CORES:
        for place, runtime in enumerate(RUNTIMES):
            model = ("kws", "ad", "ic", "sww", "vww")[(place + CORES.index(board)) % 5]
            yield model, board, runtime, {}, "warm", "auto"
            if place < 3:
                yield model, board, runtime, {}, "cold", "none"
    for model, board, runtime, changes in WHAT_IFS:
        for calibration in ("none", "auto"):
            yield model, board, runtime, changes, "warm", calibration


def fingerprint(model: str, board: str, runtime: str, changes: Mapping[str, object],
                temperature: str, calibration: str) -> dict[str, Any]:
    """Return the totals of a prediction and the hash of all its bills, or why it is refused."""
    try:
        deployment = twin.deploy(model, board, runtime=runtime)
        if changes:
            deployment = deployment.replace(changes)
        made = twin.predict(deployment, temperature=temperature, calibration=calibration)
    except TwinError as refusal:
        return {"refused": type(refusal).__name__}
    digest = hashlib.sha256()
    for layer in made.layers:
        for line in layer.bill.lines:
            digest.update(repr((line.event, line.place, line.operand, line.clock, line.occurred,
                                line.exposed, line.cycles, line.energy_pj)).encode())
    sure = made.certainty
    return {"time_us": made.time_us, "energy_uj": made.energy_uj, "ram_bytes": made.ram_bytes,
            "flash_bytes": made.flash_bytes, "layers": len(made.layers),
            "interval_us": None if sure is None else [sure.time_us.low, sure.time_us.high],
            "bills_sha256": digest.hexdigest()}


def survey() -> dict[str, dict[str, Any]]:
    """Fingerprint every configuration, in order, with a progress line."""
    made: dict[str, dict[str, Any]] = {}
    todo = list(configurations())
    for place, one in enumerate(todo):
        model, board, runtime, changes, temperature, calibration = one
        said = "".join(f" {path}={value}" for path, value in changes.items())
        name = f"{model} on {board} with {runtime}{said}, {temperature}, prices {calibration}"
        print(f"\r{place + 1} of {len(todo)}", end="", file=sys.stderr, flush=True)
        made[name] = fingerprint(*one)
    print(file=sys.stderr)
    return made


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return one line for each prediction that moved, came or went."""
    moved = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        keys = sorted(key for key in {*(old or {}), *(new or {})}
                      if (old or {}).get(key) != (new or {}).get(key))
        moved.append(f"{name}: " + ", ".join(
            f"{key} {(old or {}).get(key)} -> {(new or {}).get(key)}" for key in keys))
    return moved


def main() -> int:
    """Write or compare fingerprints; exit 1 when one moved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, help="file to keep the fingerprints in")
    parser.add_argument("--against", type=Path, default=KEPT, help="file to compare with")
    asked = parser.parse_args()
    made = survey()
    if asked.write is not None:
        asked.write.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        print(f"{len(made)} predictions kept in {asked.write}")
        return 0
    moved = compare(json.loads(asked.against.read_text(encoding="utf-8")), made)
    print("\n".join([*moved, f"{len(made) - len(moved)} of {len(made)} predictions are identical"]))
    return 1 if moved else 0


if __name__ == "__main__":
    raise SystemExit(main())
